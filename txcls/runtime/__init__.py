"""Where and how computation runs: device, threads, pause points, stop requests."""
