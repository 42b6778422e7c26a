# The app as a container, for a Docker Space on Hugging Face or any other host:
#   docker build -t txcls . && docker run --rm -p 8501:8501 txcls
FROM python:3.11-slim-bookworm@sha256:528257d48c1da0dcecc2e725d1ae34498d60c965f1241e39cd6a85a8859bdf84

# Each visitor's run is a thread, and glibc would keep freed memory for each of many: two arenas hold a third less.
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    MALLOC_ARENA_MAX=2 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1

# Spaces run containers as this user.
RUN useradd --create-home --uid 1000 user
WORKDIR /app

# Every package by its hash, for x86-64; torch alone from PyTorch's index, whose build without CUDA is several GB smaller.
COPY requirements.lock .
RUN sed -n '/^torch==/,/[^\\]$/p' requirements.lock > /tmp/torch.lock \
    && pip install --no-deps --require-hashes --index-url https://download.pytorch.org/whl/cpu -r /tmp/torch.lock \
    && pip install --no-deps --require-hashes -r requirements.lock

# The user cannot write to this folder.
COPY . .
USER user

EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "from urllib.request import urlopen; urlopen('http://localhost:8501/_stcore/health', timeout=4)"]

CMD ["python", "-m", "streamlit", "run", "streamlit_app.py", "--server.address=0.0.0.0", "--server.port=8501", \
     "--server.headless=true"]
