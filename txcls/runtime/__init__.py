"""Where and how computation runs: device, threads, pause points, stop requests; atomic file replacement."""
