"""Parts shared by all pages: layout, state, lecture mode, and the cache and compute queue of all sessions."""
