"""The expression language: a subset of CEL, compiled to closures, metered and deterministic."""

from pawlflow.definition.express.compile import Expression, compile_expression
from pawlflow.definition.express.cost import COST_MAX
from pawlflow.definition.express.errors import ExpressionError
from pawlflow.definition.express.parse import DEPTH_MAX
from pawlflow.definition.express.scope import Ref
from pawlflow.definition.express.template import Template, compile_template
from pawlflow.definition.express.tokens import SOURCE_MAX

__all__ = [
    "COST_MAX",
    "DEPTH_MAX",
    "SOURCE_MAX",
    "Expression",
    "ExpressionError",
    "Ref",
    "Template",
    "compile_expression",
    "compile_template",
]
