"""Write the q, k and v of a Hugging Face model's heads to a .safetensors that causalrank reads.

Needs torch and transformers 5, which causalrank itself does not: run this file, or import its
functions, in an environment that has them. One member is one (layer, head, window), in that order:
member = (layer * heads + head) * windows + window. config/your-own-heads.md says more.
"""

import argparse
import math
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import torch

PROJECTIONS = {"query": "q", "key": "k", "value": "v", "q_proj": "q", "k_proj": "k", "v_proj": "v"}
OTHER_SCORES = ("softcap", "position_bias", "s_aux")  # what attention may be given beside q and k


def attention_inputs(model, **inputs) -> "dict[str, torch.Tensor]":
    """The q, k, v that each layer's attention receives: after rotary embedding and q/k norms.

    Grouped key and value heads are repeated, so each has the query head that reads it. Where a
    model scales its scores by other than 1/sqrt(d), q is multiplied by the rest, so the model's
    scores are always q k^T / sqrt(d). Returns float32 (members, N, d), v (members, N, d_v). Raises
    ValueError where the scores of a model have other terms, as far as transformers tells.
    """
    from transformers import AttentionInterface, AttentionMaskInterface, __version__
    from transformers.masking_utils import ALL_MASK_ATTENTION_FUNCTIONS
    from transformers.modeling_utils import ALL_ATTENTION_FUNCTIONS

    if int(__version__.split(".")[0]) < 5:  # before, some models changed their scores elsewhere
        raise ValueError(f"transformers {__version__} is too old; use 5, or projections")
    sdpa = ALL_ATTENTION_FUNCTIONS["sdpa"]
    layers = {"q": [], "k": [], "v": []}

    def record(module, query, key, value, *args, scaling=None, **kwargs):
        if extra := [name for name in OTHER_SCORES if kwargs.get(name) is not None]:
            raise ValueError(f"the model's scores have {extra[0]} beside q k^T / sqrt(d)")
        rest = 1.0 if scaling is None else scaling * math.sqrt(query.shape[-1])
        exact = math.isclose(rest, 1.0, rel_tol=1e-9)
        layers["q"].append(query if exact else query.float() * rest)
        layers["k"].append(key)
        layers["v"].append(value)
        return sdpa(module, query, key, value, *args, scaling=scaling, **kwargs)

    AttentionInterface.register("record", record)
    AttentionMaskInterface.register("record", ALL_MASK_ATTENTION_FUNCTIONS["sdpa"])
    before = model.config._attn_implementation
    model.set_attn_implementation("record")
    try:
        _run(model, inputs)
    finally:
        model.set_attn_implementation(before)
    return _members(layers)


def projections(model, **inputs) -> "dict[str, torch.Tensor]":
    """What the q, k, v projections of each layer return: before rotary embedding and q/k norms.

    Forward hooks on the modules called query, key, value (as in BERT) or q_proj, k_proj, v_proj (as
    in Llama and Qwen). Shapes, and the repetition of grouped heads, as in `attention_inputs`.
    """
    config = model.config.get_text_config()
    d = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    layers = {"q": [], "k": [], "v": []}

    def keep(letter):
        def hook(module, args, output):  # output: (windows, N, heads * d)
            layers[letter].append(output.unflatten(-1, (-1, d)).transpose(1, 2))

        return hook

    hooks = [
        module.register_forward_hook(keep(PROJECTIONS[name]))
        for path, module in model.named_modules()
        if (name := path.rpartition(".")[2]) in PROJECTIONS
    ]
    try:
        _run(model, inputs)
    finally:
        for hook in hooks:
            hook.remove()
    return _members(layers)


def _run(model, inputs) -> None:
    import torch

    model.eval()
    with torch.no_grad():
        model(**inputs)


def _members(layers) -> "dict[str, torch.Tensor]":
    """Lists over layers of (windows, heads, N, d) to float32 (layers * heads * windows, N, d)."""
    import torch

    if not layers["q"]:
        raise ValueError("no attention of this model was seen; try the other of the two functions")
    heads = layers["q"][0].shape[1]
    return {
        letter: torch.stack(
            [x.repeat_interleave(heads // x.shape[1], dim=1).transpose(0, 1) for x in found]
        )
        .flatten(0, 2)
        .float()
        .cpu()
        .contiguous()
        for letter, found in layers.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--model", required=True, help="name or folder for from_pretrained")
    parser.add_argument("--text", required=True, help="UTF-8 text that the model reads")
    parser.add_argument("--output", required=True, help="the .safetensors to write")
    parser.add_argument("--N", type=int, default=512, help="tokens in a window (default: 512)")
    parser.add_argument("--windows", type=int, default=1, help="windows of text (default: 1)")
    parser.add_argument("--projections", action="store_true", help="before rotary embedding")
    args = parser.parse_args()

    import torch
    from safetensors.torch import save_file
    from transformers import AutoModel, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(args.model)
    text = Path(args.text).read_text(encoding="utf-8")
    tokens = tokenizer(text, truncation=True, max_length=args.N, return_overflowing_tokens=True)
    whole = [window for window in tokens["input_ids"] if len(window) == args.N][: args.windows]
    if len(whole) < args.windows:
        raise SystemExit(f"error: {args.text} fills {len(whole)} windows of {args.N} tokens")
    capture = projections if args.projections else attention_inputs
    try:
        heads = capture(AutoModel.from_pretrained(args.model), input_ids=torch.tensor(whole))
    except ValueError as error:
        raise SystemExit(f"error: {error}") from None
    save_file(heads, args.output)
    print({letter: tuple(array.shape) for letter, array in heads.items()})


if __name__ == "__main__":
    main()
