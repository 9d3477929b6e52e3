"""python -m bench.peers data joeynmt"""

import sys

from bench.peers import NEEDS, make

for wanted in sys.argv[1:] or NEEDS:
    make(wanted)
