"""The lock protocol of docs/design.md, section 4: who may answer with which node, among any number of replicas.

    protocol       what it needs of a cluster, is asked, and answers
    round          the seven steps
    attempt        what one attempt of a round read and decided
    waiting        the requests of a round without an answer, and the time that is left for them
    young_claims   claims that do not exist yet are waited for
    settling       what will not stand in the way in a moment is waited for
    confirming     a node that was only proposed is read before it is promised
    promising      what the pods will take counts for other groups from the decision on
    writing        steps 5 and 6: ledger and second records
    unanswered     the entries that a round wrote and has not answered
    sweeping       entries that are over are taken off the claims of quiet groups
    memory         what one process remembers of its own answers
    queue          requests of one group that reach one process share a round
    looking        what would be decided now; nothing is written
    tools          what rounds are given to work with

Safety never rests on memory or queue: it rests on the compare-and-swap between processes.
"""
