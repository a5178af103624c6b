"""The studies that can be reproduced.

A new study is a package with the same parts and a line here; `sojourn reproduce` knows nothing else of it.
"""

from typing import Any

from sojourn.studies.adhoc_tree.study import STUDY as ADHOC_TREE
from sojourn.studies.architectures.study import STUDY as ARCHITECTURES
from sojourn.studies.handoff.study import STUDY as HANDOFF
from sojourn.studies.manet.study import STUDY as MANET
from sojourn.studies.publisher_mobility.study import STUDY as PUBLISHER_MOBILITY
from sojourn.studies.study import Study as WholeStudy

Study = WholeStudy[Any, Any]
"""Any of them: a scale and a table are each study's own business."""

STUDIES: dict[str, Study] = {
    study.name: study for study in (PUBLISHER_MOBILITY, HANDOFF, ADHOC_TREE, ARCHITECTURES, MANET)
}
"""Every study by name, in the order in which they are run."""
