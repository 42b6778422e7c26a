"""Where and how computing runs: device, threads, pause points, requests to stop."""
