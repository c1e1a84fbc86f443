"""The JUnit report: one test case per stage and subject, one failure per finding.

Test cases have the same names in every run and on every machine, so that CI can follow them.
"""

from __future__ import annotations

from collections import defaultdict
from xml.etree import ElementTree as ET

from conformance.events import Finding, StageFinished
from conformance.report.collect import Report
from conformance.report.text import finding_lines
from conformance.verdict import Verdict


def dumps(report: Report) -> str:
    """The XML text as CI servers read it: failures, errors and skipped are counted."""
    by_stage: dict[str, list[StageFinished]] = defaultdict(list)
    for stage in report.stages:
        by_stage[stage.stage].append(stage)
    findings: dict[str, list[Finding]] = defaultdict(list)
    for finding in report.findings:
        findings[finding.stage].append(finding)
    root = ET.Element("testsuites", name="kconform", time=f"{report.seconds:.3f}")
    for name, stages in by_stage.items():
        _suite(root, name, stages, findings.pop(name, []))
    for name, left in findings.items():
        _suite(root, name, [], left)
    ET.indent(root)
    return ET.tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _suite(
    root: ET.Element, name: str, stages: list[StageFinished], findings: list[Finding]
) -> None:
    suite = ET.SubElement(root, "testsuite", name=f"kconform.{name}")
    for stage in stages:
        case = ET.SubElement(
            suite,
            "testcase",
            classname=f"kconform.{name}",
            name=stage.subject or name,
            time=f"{stage.seconds:.3f}",
        )
        _outcome(case, stage)
    for finding in findings:
        case = ET.SubElement(suite, "testcase", classname=f"kconform.{name}", name=finding.title)
        failure = ET.SubElement(case, "failure", message=_clean(finding.message), type=finding.key)
        failure.text = _clean("\n".join(finding_lines(finding)))
    counts = {
        "tests": len(stages) + len(findings),
        "failures": len(suite.findall("testcase/failure")),
        "errors": len(suite.findall("testcase/error")),
        "skipped": len(suite.findall("testcase/skipped")),
    }
    for key, value in counts.items():
        suite.set(key, str(value))


def _outcome(case: ET.Element, stage: StageFinished) -> None:
    tags = {Verdict.FAIL: "failure", Verdict.ERROR: "error", Verdict.INCONCLUSIVE: "error"}
    tag = "skipped" if stage.consequence else tags.get(stage.verdict)
    if tag is not None:
        ET.SubElement(case, tag, message=_clean(stage.summary), type=str(stage.verdict))


def _clean(text: str) -> str:
    """XML 1.0 has no place for most control characters."""
    return "".join(ch for ch in text if ch in "\t\n\r" or ord(ch) >= 0x20)
