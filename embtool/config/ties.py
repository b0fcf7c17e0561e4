"""Whether a model type ties its two tables when its config does not say.

The defaults of `tie_word_embeddings` as the classes of transformers 5.18 and 4.57 resolve them.
They are no rule of the format: some types changed theirs between those releases, and a config
that was saved under one may be read under the other.
"""

_TIED = """
albert bart bert bert-generation big_bird biogpt blenderbot blenderbot-small blip-2 bloom
camembert canary cohere cohere2 cohere2_moe cohere2_vision convbert ctrl data2vec-text
deberta deberta-v2 deepseek_vl deepseek_vl_hybrid distilbert electra ernie ernie4_5
ernie4_5_moe ernie4_5_vl_moe esm falcon falcon_mamba flaubert florence2 fnet fun_asr_nano
funnel gemma gemma2 gemma3 gemma3_text gemma3n gemma3n_text gemma4 gemma4_text
gemma4_unified gemma4_unified_text glmasr got_ocr2 gpt-sw3 gpt2 gpt_bigcode gpt_neo
gpt_neox_japanese granite_speech_plus granite_swa grok-1 gte hyperclovax_vision_v2 ibert
instructblip instructblipvideo internvl janus jetmoe jina_embeddings_v3 kimi_k25 kosmos-2
kosmos-2.5 layoutlm led lfm2 lfm2_vl lighton_ocr longformer longt5 m2m_100 mamba marian
mbart megatron-bert minicpm3 mistral3 mobilebert modernbert modernbert-decoder moonshine
mpnet mpt mra mvp neomme nllb-moe nomic_bert nystromformer openai-gpt openelm opt ovis2
paddleocr_vl paligemma pegasus pegasus_x plbart pp_chart2table prophetnet qwen3_asr
recurrent_gemma roberta roberta-prelayernorm roc_bert roformer seamless_m4t seamless_m4t_v2
shieldgemma2 smollm3 speech_to_text speecht5 squeezebert starcoder2 switch_transformers t5
t5gemma2 tapas trocr udop umt5 vaultgemma visual_bert voxtral_realtime whisper xglm xlm
xlm-roberta xlm-roberta-xl xlnet xmod yoso youtu zamba zamba2 zaya
"""

_UNTIED = """
afmoe apertus arcee aria_text audioflamingo3 axk1 axk2 bamba bitnet blt chatglm codegen
cohere_asr cosmos3_edge cosmos3_omni cwm deepseek_v2 deepseek_v3 deepseek_v32 deepseek_v4
diffllama doge esmc eurobert evolla exaone4 exaone4_5 exaone_moe falcon_h1 fast_vlm
flex_olmo fsmt fuyu git glm glm4 glm46v glm4_moe glm4_moe_lite glm5_next glm_moe_dsa glm_ocr
glmga gpt_neox gpt_oss gptj granite granitemoe granitemoe_swa granitemoehybrid
granitemoeshared helium hrm_text hy_v3 hy_v4 hyperclovax idefics idefics2 inkling_mm_model
inkling_text internlm2 jais2 jamba kimi_linear laguna llama llama4 llama4_text llava_next
llava_next_video llava_onevision longcat_flash mamba2 mellum mimo_v2_flash minicpmv4_6
minicpmv4_7 minimax minimax_m2 minimax_m3_vl minimax_m3_vl_text ministral3 mistral mistral4
mixtral mllama modernvbert molmo moshi muse_glimmer musicflamingo nanochat nemotron_h olmo
olmo2 olmo3 olmo_hybrid olmoe persimmon phi phi-msft phi3 phi4_multimodal phimoe pix2struct
qianfan_ocr qwen qwen2 qwen2_5_omni_thinker qwen2_5_vl qwen2_audio qwen2_moe qwen2_vl qwen3
qwen3_5 qwen3_5_moe qwen3_5_moe_text qwen3_5_text qwen3_moe qwen3_next
qwen3_omni_moe_thinker qwen3_vl qwen3_vl_moe reformer rembert rwkv rwkv7 seed_oss solar_open
stablelm step3p7 vibevoice vibevoice_asr video_llama_3 voxtral xlstm
"""

# Tied in one of the two releases and untied in the other.
_CHANGED = """
aria bigbird_pegasus cpmant glm4v glm4v_moe granite_speech llava luke mt5 pop2piano t5gemma
video_llava vipllava
"""


def tied_by_default(model_type: str) -> bool | None:
    """True or False where the releases agree, None for a type that is unknown or has changed."""
    if model_type in _TIED.split():
        return True
    return False if model_type in _UNTIED.split() else None


def default_changed(model_type: str) -> bool:
    """Whether the default of this type depends on the release that reads the config."""
    return model_type in _CHANGED.split()
