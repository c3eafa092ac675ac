"""doc_examples.py FILE.md: runs each ```python block of a page; blocks that import pandas are left
out, with the reason, where pandas is not installed."""
import re
import sys

blocks = re.findall(r"^```python\n(.*?)^```", open(sys.argv[1]).read(), re.M | re.S)
assert blocks, "no Python examples in " + sys.argv[1]
for block in blocks:
    if "pandas" in block:
        try:
            import pandas  # noqa: F401
        except ImportError:
            print("not run, pandas is not installed (Debian: python3-pandas):")
            print(block)
            continue
    exec(compile(block, sys.argv[1], "exec"), {})
