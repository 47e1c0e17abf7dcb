# usage: awk -f anchors.awk PAGE.md
#
# For Doxygen, which does not know headings by the names that links on GitHub use: names those headings to which the page
# itself links.

function slug(heading) {
    heading = tolower(heading)
    gsub(/[^a-z0-9 _-]/, "", heading)
    gsub(/ /, "-", heading)
    return heading
}

BEGIN {
    while ((getline line <ARGV[1]) > 0)
        while (match(line, /\]\(#[^)]*\)/)) {
            linked[substr(line, RSTART + 3, RLENGTH - 4)] = 1
            line = substr(line, RSTART + RLENGTH)
        }
    close(ARGV[1])
}
/^```/ { code = !code }
!code && /^##+ / {
    text = $0
    sub(/^#+ /, "", text)
    if (slug(text) in linked) {
        print $0 " {#" slug(text) "}"
        next
    }
}
{ print }
