"""Corpus checks: find defects, where they are, and what to do about them.

    examples -> examine -> Diagnosis -> findings (reasons, samples) -> summary, report, clean

>>> from regard.data.example import Example, Location
>>> corpus = [Example(Location("a.en", 1), "Good morning to everybody!", "Good morning to everybody!")]
>>> corpus_report = check_corpus(corpus)
>>> [rule.name for rule in corpus_report.rules if len(corpus_report.find_rows(rule.name))]
['copy']
"""

from regard.data.doctor.check import CorpusReport, check_corpus
from regard.data.doctor.rules.rule import RULES, Finding, Rule, select_rules

__all__ = ["RULES", "CorpusReport", "Finding", "Rule", "check_corpus", "select_rules"]
