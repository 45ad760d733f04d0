"""Write a software bill of materials (CycloneDX 1.6, JSON) from the pins.

    python tools/sbom.py requirements.txt > sbom.json

Each pinned package is a component with its version, its package URL, the license that its
metadata states (if it is installed) and the SHA-256 of every file that pip accepts for it.
"""

import json
import sys
import uuid
from importlib.metadata import PackageNotFoundError, metadata, version
from pathlib import Path
from typing import Any

from pin_hashes import Pin, read_pins


def component(pin: Pin) -> dict[str, Any]:
    """Describe one package."""
    address = f"pkg:pypi/{pin.name}@{pin.version}"
    described: dict[str, Any] = {
        "type": "library",
        "bom-ref": address,
        "name": pin.requirement.name,
        "version": str(pin.version),
        "purl": address,
    }
    license = _license(pin)
    if license is not None:
        described["licenses"] = [license]
    # One component stands for all files of the version, so the digests are those of its parts.
    described["components"] = [
        {
            "type": "file",
            "name": f"{pin.requirement.name} {pin.version}, file {number}",
            "hashes": [{"alg": "SHA-256", "content": digest}],
        }
        for number, digest in enumerate(pin.hashes, start=1)
    ]
    return described


def _license(pin: Pin) -> dict[str, Any] | None:
    try:
        about = metadata(pin.requirement.name)
    except PackageNotFoundError:
        return None
    if about.get("License-Expression"):
        return {"expression": about["License-Expression"]}
    named = (about.get("License") or "").strip().splitlines()
    return {"license": {"name": named[0]}} if named else None


def bill(pins: list[Pin]) -> dict[str, Any]:
    """Make the bill; the same pins give the same bill."""
    parts = [component(pin) for pin in sorted(pins, key=lambda pin: pin.name)]
    own = f"pkg:pypi/dpublish@{version('dpublish')}"
    text = json.dumps([part["purl"] for part in parts])
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, own + text)}",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": own,
                "name": "dpublish",
                "version": version("dpublish"),
                "purl": own,
            }
        },
        "components": parts,
        "dependencies": [{"ref": own, "dependsOn": [part["purl"] for part in parts]}],
    }


def main(files: list[str]) -> None:
    """Print the bill of all pins in the files that are named."""
    pins = [pin for name in files for pin in read_pins(Path(name).read_text("utf-8"))]
    print(json.dumps(bill(pins), indent=1, ensure_ascii=False))


if __name__ == "__main__":
    main(sys.argv[1:])
