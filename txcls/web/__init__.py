"""The browser code: forward pass, cleaning and tokenisation in JavaScript; and the export of pages without a server."""
