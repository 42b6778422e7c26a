"""Properties of text are tried without a deadline: the first example may have to import NLTK."""

from hypothesis import settings

settings.register_profile("no deadline", deadline=None)
settings.load_profile("no deadline")
