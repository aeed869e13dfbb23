"""Chat templates in the manner of well-known families, and the files of a tokenizer with one."""

from __future__ import annotations

from copy import copy
from pathlib import Path

from orchestrator.prompt.chat_template import ChatTemplate
from orchestrator.prompt.encoder import PromptEncoder
from orchestrator.prompt.renderer import TemplateSource
from uag_common.model import TokenizerFile

CHATML = (
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
)
FAMILIES = {
    "chatml": CHATML,
    "concatenated": (
        "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\n'"
        " + message['content'] + '<|im_end|>' + '\n' }}{% endfor %}"
        "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}"
    ),
    "mistral": (
        "{{ bos_token }}{% for m in messages %}{% if m.role == 'user' %}"
        "[INST] {{ m.content }}[/INST]{% else %}{{ m.content }}{{ eos_token }}{% endif %}"
        "{% endfor %}"
    ),
    "brackets": (
        "{{ bos_token }}{% for m in messages %}[INST]{{ m.content }}[/INST]{{ m.role }}"
        "{{ eos_token }}{% endfor %}"
    ),
    "trimmed": (
        "{{ bos_token }}{% for m in messages %}{{ '<start_of_turn>' + m.role + '\n'"
        " + m.content | trim + '<end_of_turn>\n' }}{% endfor %}<start_of_turn>model\n"
    ),
    "headers": (
        "{{- bos_token }}{%- for m in messages %}"
        "{{- '<|start_header_id|>' + m['role'] + '<|end_header_id|>\n\n' + m['content'] | trim"
        " + '<|eot_id|>' }}{%- endfor %}"
        "{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}"
    ),
    "placeholders": (
        "{% for m in messages %}{{ '<|' + m.role + '|>\n' + m.content + '</s>\n' }}{% endfor %}"
        "<|assistant|>\n"
    ),
    "thinking": (
        "{%- for m in messages %}{%- set content = m.content %}"
        "{%- if m.role == 'assistant' and '</think>' in content %}"
        "{%- set content = content.split('</think>')[-1].lstrip('\n') %}{%- endif %}"
        "{{- '<|im_start|>' + m.role + '\n' + content + '<|im_end|>\n' }}{%- endfor %}"
        "{{- '<|im_start|>assistant\n' }}"
        "{%- if '/no_think' in messages[0].content %}{{- '<think>\n\n</think>\n\n' }}{%- endif %}"
    ),
    "as json": (
        "{% for m in messages %}{{ m | tojson(indent=2) }}</s>{{ m.content | length }}"
        "{{ m.content | upper }}{{ m.content.startswith('  ') }}{% endfor %}"
    ),
}


def a_template(source: str, **special_tokens: str) -> ChatTemplate:
    """A template that may name these tokens."""
    return ChatTemplate(TemplateSource(source, special_tokens))


def with_template(encoder: PromptEncoder, template: ChatTemplate) -> PromptEncoder:
    """The encoder of the same tokenizer with another template."""
    other = copy(encoder)
    other._chat = template
    return other


def tokenizer_files(folder: Path, template: str | None = None) -> list[TokenizerFile]:
    """The files of a tokenizer in a folder, with the template in the place of its own."""
    found = [TokenizerFile(path.name, path.read_bytes()) for path in folder.glob("*.json")]
    if template is not None:
        found.append(TokenizerFile("chat_template.jinja", template.encode()))
    return found
