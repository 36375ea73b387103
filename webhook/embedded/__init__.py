"""What stands around the webhook on the embedded cluster: the API server and the StatefulSet controller.

`admission.py` keeps what was admitted, `sets.py` makes the pods of StatefulSets, `reviews.py` what the API
server would send, `answers.py` what it would make of the answer.
"""
