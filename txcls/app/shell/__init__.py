"""What all pages share: layout, state, lecture mode, the cache and the queue between sessions."""
