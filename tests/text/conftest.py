"""Property tests of texts have no deadline, since the first example may import NLTK."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
