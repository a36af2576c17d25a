#!/bin/sh
# The LaTeX of a folder of tables through pdflatex and booktabs: fails at the first error.
#
#     scripts/peers/latex_tables.sh results/testdata/evidence/tables [OUT.pdf]
#
# Debian: apt-get install --no-install-recommends texlive-latex-base texlive-latex-recommended
set -eu
tables=$(cd "$1" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
{
	printf '%s\n' '\documentclass{article}' '\usepackage{booktabs,graphicx}' '\usepackage[a2paper,landscape,margin=1cm]{geometry}' '\begin{document}'
	for t in "$tables"/t*.tex; do
		# A part ends at \end{tabular}; each is shrunk to the page.
		printf '\\section*{%s}\n' "$(basename "$t" .tex)"
		sed 's/^\\begin{tabular}/\\par\\bigskip\\resizebox{\\ifdim\\width>\\linewidth \\linewidth\\else\\width\\fi}{!}{&/; s/^\\end{tabular}/&}/' "$t"
	done
	printf '%s\n' '\end{document}'
} >"$work/all.tex"
cd "$work"
pdflatex -interaction=nonstopmode -halt-on-error all.tex >out.txt || { grep -A3 '^!' out.txt; exit 1; }
echo "$(find "$tables" -maxdepth 1 -name 't*.tex' | wc -l) files, $(grep -c '^.end{tabular}' "$tables"/t*.tex | awk -F: '{n += $2} END {print n}') tables: $(grep '^Output written' out.txt)"
cd - >/dev/null
[ $# -lt 2 ] || cp "$work/all.pdf" "$2"
