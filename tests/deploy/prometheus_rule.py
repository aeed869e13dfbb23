"""`python -m tests.deploy.prometheus_rule`: writes the rule file as an object of the Prometheus
operator, which cannot include a file. A test compares the two."""

from __future__ import annotations

from textwrap import indent

from tests.deploy.rendering import DEPLOY

RULES = DEPLOY / "prometheus" / "alerts.yml"
OBJECT = DEPLOY / "components" / "prometheus-operator" / "alerts.yaml"
HEADER = """\
# Written from deploy/prometheus/alerts.yml by `python -m tests.deploy.prometheus_rule`.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: uag
  namespace: uag
spec:
"""


def prometheus_rule() -> str:
    """As it ought to be."""
    return HEADER + indent(RULES.read_text(), "  ")


if __name__ == "__main__":
    OBJECT.write_text(prometheus_rule())
