"""Parts shared by all pages: layout, state, lecture mode, and the cache and queue shared by all sessions."""
