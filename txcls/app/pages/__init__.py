"""The pages; each is a file or folder named like its URL path."""
