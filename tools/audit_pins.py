"""Look the pins up among known vulnerabilities, with pip-audit.

    python tools/audit_pins.py path/to/pip-audit requirements.txt requirements-dev.txt

Exit code 0: nothing is known.  1: a pin has a known vulnerability.  2: the pins could not be
looked up, so nothing is known either way.
"""

import json
import subprocess
import sys


def main(auditor: str, files: list[str]) -> None:
    """Print what is known of the pins, and leave with a code that says how it went."""
    named = [word for file in files for word in ("-r", file)]
    done = subprocess.run(
        [auditor, "--disable-pip", "--no-deps", "--progress-spinner", "off", "-f", "json", *named],
        capture_output=True,
        text=True,
        check=False,
    )
    try:
        found = json.loads(done.stdout)["dependencies"]
    except (ValueError, LookupError):
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        print(f"not audited: the vulnerability service was not reached ({last})", file=sys.stderr)
        sys.exit(2)
    skipped = [each["name"] for each in found if "skip_reason" in each]
    known = [(each, flaw) for each in found for flaw in each.get("vulns", ())]
    for each, flaw in known:
        mended = ", ".join(flaw["fix_versions"]) or "no version yet"
        print(f"{each['name']} {each['version']}: {flaw['id']}, mended in {mended}")
    print(f"{len(found) - len(skipped)} pins looked up, {len(known)} known vulnerabilities")
    if skipped:
        print(f"not audited: {', '.join(skipped)}", file=sys.stderr)
        sys.exit(2)
    sys.exit(1 if known else 0)


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
