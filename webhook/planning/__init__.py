"""What would be answered for pods that do not exist yet: `tidb-ha-webhook plan`.

`inputs.py` reads what the user wants to create, `plan.py` has it decided in sequence on the embedded cluster,
`rows.py` says what an answer means, `doubts.py` what the dump lacks to be sure of it, `report.py` prints both.
"""
