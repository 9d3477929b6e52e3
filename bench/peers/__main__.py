"""python -m bench.peers data joeynmt"""

import sys

from bench.peers import REQUIREMENTS, make_environment

for name in sys.argv[1:] or REQUIREMENTS:
    make_environment(name)
