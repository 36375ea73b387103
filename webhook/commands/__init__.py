"""The commands of `tidb-ha-webhook`, one module each, with a `click.Command` that `webhook.cli` registers.

What a command works with (Flask, the Kubernetes client, gunicorn) is imported when the command runs, not
here: `--help` answers at once, and a wrong flag is refused before anything is loaded.
"""
