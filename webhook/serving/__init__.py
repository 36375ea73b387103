"""The server: gunicorn's processes, and an event loop of our own that owns every socket (see `frontend.py`)."""
