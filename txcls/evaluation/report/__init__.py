"""How good a classifier is, row by row: figures, mistakes, rows whose label looks wrong, and the linear peer.

python -m txcls report ag_news                      # on the test rows of its data set
python -m txcls report ag_news --data mine.csv --out report.html
"""

from txcls.evaluation.report.confusion import WorstPair, cluster_order, worst_pairs
from txcls.evaluation.report.labels import (
    SuspectRow,
    corrected_csv,
    corrected_table_csv,
    held_out_probabilities,
    out_of_fold_probabilities,
    suspect_rows,
)
from txcls.evaluation.report.peer import PeerAnswers, ask_peer
from txcls.evaluation.report.rows import (
    Answers,
    Report,
    RowAnswer,
    answer_rows,
    chosen_rows,
    report_on,
    some_rows,
    stored_report,
)

__all__ = [
    "Answers",
    "PeerAnswers",
    "Report",
    "RowAnswer",
    "SuspectRow",
    "WorstPair",
    "answer_rows",
    "ask_peer",
    "chosen_rows",
    "cluster_order",
    "corrected_csv",
    "corrected_table_csv",
    "held_out_probabilities",
    "out_of_fold_probabilities",
    "report_on",
    "some_rows",
    "stored_report",
    "suspect_rows",
    "worst_pairs",
]
