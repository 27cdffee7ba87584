#!/bin/sh
# Writes the manual pages of the C interface, which are made from the comments of overspin.h:
#
#     sh crates/capi/man.sh DIR
#
#     DIR/overspin.3              everything
#     DIR/overspin_mutex_lock.3   and so on, one for each function: the same page under that name
#
# The header has to stay as it is written: a comment, then what it is about, and a prototype in one line.
set -eu
[ $# = 1 ] || { echo "man.sh: it needs the folder for the pages: man.sh DIR" >&2; exit 1; }
here=$(cd "$(dirname "$0")" && pwd)
header=$here/include/overspin.h
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$here/../../Cargo.toml" | head -n 1)
mkdir -p "$1"

awk -v version="$version" '
# What roff takes for its own: backslashes, and points and quotes at the start of a line.
function roff(text) {
    gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); gsub(/`[^`]*`/, "\\fI&\\fR", text); gsub(/`/, "", text)
    if (text ~ /^[.'"'"']/) text = "\\\\&" text
    return text
}
function prose(text) {
    return text == "" ? ".PP\n" : roff(text) "\n"
}
{
    line = $0
    if (in_comment || line ~ /^\/\* /) {
        if (!in_comment) { comment = ""; in_comment = 1 }
        ends = sub(/ *\*\/$/, "", line)
        sub(/^(\/\*| \*) ?/, "", line)
        comment = comment prose(line)
        if (ends) { in_comment = 0; if (!described) described = comment }
    } else if (match(line, /^    OVERSPIN_[A-Z_]* = [0-9]+/)) {
        name = $1; number = $3 + 0; meaning = line
        if (!sub(/.*\/\* /, "", meaning)) meaning = "success"
        sub(/ *\*\/$/, "", meaning)
        errors = errors ".TP\n.BR \"" name " \" (" number ")\n" roff(meaning) "\n"
    } else if (line ~ /^[a-z].*\);$/) {
        prototypes = prototypes ".BI \"" roff(line) "\"\n.br\n"
        functions = functions ".TP\n.B \"" roff(line) "\"\n" indented(comment)
    }
}
# A paragraph within an item keeps its indentation.
function indented(text) { gsub(/\.PP\n/, ".IP\n", text); return text }
END {
    # The first line of the header is its title.
    sub(/^[^\n]*\n\.PP\n/, "", described)
    printf ".TH OVERSPIN 3 \"\" \"overspin %s\" \"Locks of Overspin\"\n", version
    printf ".SH NAME\noverspin \\- locks for more threads than CPUs, chosen by name\n"
    printf ".SH SYNOPSIS\n.nf\n.B #include <overspin.h>\n.fi\n.PP\n%s", prototypes
    printf ".PP\nCompile with\n.BR \"$(pkg\\-config \\-\\-cflags \\-\\-libs overspin) \\-pthread\" .\n"
    printf ".SH DESCRIPTION\n%s", described
    printf ".SH FUNCTIONS\n%s", functions
    printf ".SH ERRORS\nFunctions that return an\n.I int\nreturn one of these:\n%s", errors
    printf ".SH SEE ALSO\n.BR overspin (1)\n"
}' "$header" > "$1/overspin.3"

sed -n 's/^[a-z].*[ *]\(overspin_[a-z_]*\)(.*);$/\1/p' "$header" | while read -r function; do
    echo ".so man3/overspin.3" > "$1/$function.3"
done
