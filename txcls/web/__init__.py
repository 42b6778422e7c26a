"""The browser code: forward pass, cleaning and tokenization in JavaScript; and the export of pages without a server."""
