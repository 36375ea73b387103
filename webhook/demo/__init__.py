"""The incident of pingcap/tidb-operator#264, replayed: `tidb-ha-webhook demo`.

`incident.py` has the facts, `world.py` the cluster they happened in, `visible.py` decides on what was
visible, `server.py` and `clients.py` ask the real webhook, `replay.py` puts it together, `safety.py` judges
the result by counting, `report.py` shows it, `keep.py` leaves the files for trying more.
"""
