"""The browser code: forward pass, cleaning and tokenizing in JavaScript, and pages that need no server."""
