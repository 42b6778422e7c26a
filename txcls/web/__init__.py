"""The browser code: forward pass, cleaning and tokenization in JavaScript, and pages that need no server."""
