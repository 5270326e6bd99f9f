"""The benchmarks: every figure a ratio measured in one run, by turns; `python -m benchmarks` writes the page.

timing, record, machine     how to measure, what a row is, where it was measured
group_*                     the groups; each has TITLE, READING and run(session)
findings, figures, page     from the numbers to sentences, pictures and HTML
"""
