"""Write the page of the textbook: python -m bayes_gda.teaching FOLDER."""

import sys
from pathlib import Path

from bayes_gda.teaching.page import write_textbook

if __name__ == "__main__":
    write_textbook(Path(sys.argv[1] if len(sys.argv) > 1 else "textbook"))
