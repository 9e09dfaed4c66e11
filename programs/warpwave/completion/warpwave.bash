# Completion of the command `warpwave` for bash. Made by scripts/command-reference.py from the command's own tables; do not edit.
_warpwave()
{
    local word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]:-} way choices='' options=''
    COMPREPLY=()
    way=$command
    case $command in
    store)
        choices='create drop rename list info add import export get remove count search map build-ivf calibrate drop-ivf index compact backup upgrade check'
        way="$command ${COMP_WORDS[2]:-}"
        ;;
    model)
        choices='info tokenize embed rerank logits generate chat fetch list'
        way="$command ${COMP_WORDS[2]:-}"
        ;;
    gguf)
        choices='info verify quantize from-safetensors diff'
        way="$command ${COMP_WORDS[2]:-}"
        ;;
    safetensors)
        choices='info'
        way="$command ${COMP_WORDS[2]:-}"
        ;;
    quant)
        choices='encode decode'
        way="$command ${COMP_WORDS[2]:-}"
        ;;
    esac
    if [ "$COMP_CWORD" -eq 1 ]; then
        choices='devices search store demo bench model serve gguf safetensors quant version help --help --version'
    elif [ "$command" = help ] && [ "$COMP_CWORD" -eq 2 ]; then
        choices='devices search store demo bench model serve gguf safetensors quant version help --json'
    elif [ "$command" = help ] && [ "$COMP_CWORD" -eq 3 ]; then
        case $previous in
        store) choices='create drop rename list info add import export get remove count search map build-ivf calibrate drop-ivf index compact backup upgrade check' ;;
        model) choices='info tokenize embed rerank logits generate chat fetch list' ;;
        gguf) choices='info verify quantize from-safetensors diff' ;;
        safetensors) choices='info' ;;
        quant) choices='encode decode' ;;
        esac
    elif [ -n "$choices" ] && [ "$COMP_CWORD" -eq 2 ]; then
        choices="$choices --help"
    else
        choices=''
        case $way in
        'devices')
            options='--device --json'
            case $previous in
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'search')
            options='--base --queries --format -k --metric --radius --min-score --limit --screen --type --rows-on --device --ids --id-column --query-id-column --out-neighbors --out-distances --nprobe --recall --nlist --rows-skip --rows-take --repeat --store --collection --text --model --rerank --where --filter --param --check --quiet --json'
            case $previous in
            --base) return ;;
            --queries) return ;;
            --format) compopt +o default 2>/dev/null; return ;;
            -k) compopt +o default 2>/dev/null; return ;;
            --metric) choices='cosine l2 dot' ;;
            --radius) compopt +o default 2>/dev/null; return ;;
            --min-score) compopt +o default 2>/dev/null; return ;;
            --limit) compopt +o default 2>/dev/null; return ;;
            --screen) choices='int8 none' ;;
            --type) choices='f32 f16 bf16 i8 u8' ;;
            --rows-on) choices='device host' ;;
            --device) choices='auto cpu cuda rocm' ;;
            --ids) return ;;
            --id-column) compopt +o default 2>/dev/null; return ;;
            --query-id-column) compopt +o default 2>/dev/null; return ;;
            --out-neighbors) return ;;
            --out-distances) return ;;
            --nprobe) compopt +o default 2>/dev/null; return ;;
            --recall) compopt +o default 2>/dev/null; return ;;
            --nlist) compopt +o default 2>/dev/null; return ;;
            --rows-skip) compopt +o default 2>/dev/null; return ;;
            --rows-take) compopt +o default 2>/dev/null; return ;;
            --repeat) compopt +o default 2>/dev/null; return ;;
            --store) return ;;
            --collection) compopt +o default 2>/dev/null; return ;;
            --text) compopt +o default 2>/dev/null; return ;;
            --model) return ;;
            --rerank) compopt +o default 2>/dev/null; return ;;
            --where) compopt +o default 2>/dev/null; return ;;
            --filter) compopt +o default 2>/dev/null; return ;;
            --param) compopt +o default 2>/dev/null; return ;;
            esac
            ;;
        'store create')
            options='--dim --metric --type --synchronous --json'
            case $previous in
            --dim) compopt +o default 2>/dev/null; return ;;
            --metric) choices='cosine l2 dot' ;;
            --type) choices='f32 f16 bf16 i8 u8' ;;
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store drop')
            options='--quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store rename')
            options='--quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store list')
            options='--json'
            case $previous in
            esac
            ;;
        'store info')
            options='--json'
            case $previous in
            esac
            ;;
        'store add')
            options='--in --format --ids --id-column --payloads --vector --id --payload --text --model --chunk --overlap --query-prefix --document-prefix --device --upsert --synchronous --quiet --json'
            case $previous in
            --in) return ;;
            --format) compopt +o default 2>/dev/null; return ;;
            --ids) return ;;
            --id-column) compopt +o default 2>/dev/null; return ;;
            --payloads) return ;;
            --vector) compopt +o default 2>/dev/null; return ;;
            --id) compopt +o default 2>/dev/null; return ;;
            --payload) compopt +o default 2>/dev/null; return ;;
            --text) return ;;
            --model) return ;;
            --chunk) compopt +o default 2>/dev/null; return ;;
            --overlap) compopt +o default 2>/dev/null; return ;;
            --query-prefix) compopt +o default 2>/dev/null; return ;;
            --document-prefix) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store import')
            options='--format --ids --id-column --payloads --metric --type --upsert --synchronous --quiet --json'
            case $previous in
            --format) compopt +o default 2>/dev/null; return ;;
            --ids) return ;;
            --id-column) compopt +o default 2>/dev/null; return ;;
            --payloads) return ;;
            --metric) choices='cosine l2 dot' ;;
            --type) choices='f32 f16 bf16 i8 u8' ;;
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store export')
            options='--format --ids --payloads --quiet --json'
            case $previous in
            --format) compopt +o default 2>/dev/null; return ;;
            --ids) return ;;
            --payloads) return ;;
            esac
            ;;
        'store get')
            options='--id --ids --where --filter --param --limit --after --vectors --json'
            case $previous in
            --id) compopt +o default 2>/dev/null; return ;;
            --ids) return ;;
            --where) compopt +o default 2>/dev/null; return ;;
            --filter) compopt +o default 2>/dev/null; return ;;
            --param) compopt +o default 2>/dev/null; return ;;
            --limit) compopt +o default 2>/dev/null; return ;;
            --after) compopt +o default 2>/dev/null; return ;;
            esac
            ;;
        'store remove')
            options='--id --ids --where --filter --param --missing-ok --synchronous --json'
            case $previous in
            --id) compopt +o default 2>/dev/null; return ;;
            --ids) return ;;
            --where) compopt +o default 2>/dev/null; return ;;
            --filter) compopt +o default 2>/dev/null; return ;;
            --param) compopt +o default 2>/dev/null; return ;;
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store count')
            options='--where --filter --param --json'
            case $previous in
            --where) compopt +o default 2>/dev/null; return ;;
            --filter) compopt +o default 2>/dev/null; return ;;
            --param) compopt +o default 2>/dev/null; return ;;
            esac
            ;;
        'store search')
            options='--queries -k --where --filter --param --radius --min-score --limit --device --nprobe --recall --text --model --mode --fusion --weights --rerank --candidates --mmr --group-by --groups --group-size --expand --vector --format --quiet --json'
            case $previous in
            --queries) return ;;
            -k) compopt +o default 2>/dev/null; return ;;
            --where) compopt +o default 2>/dev/null; return ;;
            --filter) compopt +o default 2>/dev/null; return ;;
            --param) compopt +o default 2>/dev/null; return ;;
            --radius) compopt +o default 2>/dev/null; return ;;
            --min-score) compopt +o default 2>/dev/null; return ;;
            --limit) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            --nprobe) compopt +o default 2>/dev/null; return ;;
            --recall) compopt +o default 2>/dev/null; return ;;
            --text) compopt +o default 2>/dev/null; return ;;
            --model) return ;;
            --mode) choices='vector text hybrid' ;;
            --fusion) choices='ranks scores' ;;
            --weights) compopt +o default 2>/dev/null; return ;;
            --rerank) compopt +o default 2>/dev/null; return ;;
            --candidates) compopt +o default 2>/dev/null; return ;;
            --mmr) compopt +o default 2>/dev/null; return ;;
            --group-by) compopt +o default 2>/dev/null; return ;;
            --groups) compopt +o default 2>/dev/null; return ;;
            --group-size) compopt +o default 2>/dev/null; return ;;
            --expand) compopt +o default 2>/dev/null; return ;;
            --vector) compopt +o default 2>/dev/null; return ;;
            --format) compopt +o default 2>/dev/null; return ;;
            esac
            ;;
        'store map')
            options='--out --color --ids --seed --neighbours --steps --remake --device --synchronous --quiet --json'
            case $previous in
            --out) return ;;
            --color) compopt +o default 2>/dev/null; return ;;
            --ids) return ;;
            --seed) compopt +o default 2>/dev/null; return ;;
            --neighbours) compopt +o default 2>/dev/null; return ;;
            --steps) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store build-ivf')
            options='--nlist --sample-rows --iterations --seed --device --synchronous --quiet --json'
            case $previous in
            --nlist) compopt +o default 2>/dev/null; return ;;
            --sample-rows) compopt +o default 2>/dev/null; return ;;
            --iterations) compopt +o default 2>/dev/null; return ;;
            --seed) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store calibrate')
            options='-k --queries --format --query-count --recall --seed --device --synchronous --quiet --json'
            case $previous in
            -k) compopt +o default 2>/dev/null; return ;;
            --queries) return ;;
            --format) compopt +o default 2>/dev/null; return ;;
            --query-count) compopt +o default 2>/dev/null; return ;;
            --recall) compopt +o default 2>/dev/null; return ;;
            --seed) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store drop-ivf')
            options='--quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store index')
            options='--quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store compact')
            options='--quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store backup')
            options='--force --quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store upgrade')
            options='--quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'store check')
            options='--quiet --synchronous --json'
            case $previous in
            --synchronous) choices='full normal off' ;;
            esac
            ;;
        'demo')
            options='--device --metric -k --store'
            case $previous in
            --device) choices='auto cpu cuda rocm' ;;
            --metric) choices='cosine l2 dot' ;;
            -k) compopt +o default 2>/dev/null; return ;;
            --store) return ;;
            esac
            ;;
        'bench')
            options='--rows --dim --queries -k --metric --repeat --screen --type --rows-on --ivf --nlist --device --quiet --json'
            case $previous in
            --rows) compopt +o default 2>/dev/null; return ;;
            --dim) compopt +o default 2>/dev/null; return ;;
            --queries) compopt +o default 2>/dev/null; return ;;
            -k) compopt +o default 2>/dev/null; return ;;
            --metric) choices='cosine l2 dot' ;;
            --repeat) compopt +o default 2>/dev/null; return ;;
            --screen) choices='int8 none' ;;
            --type) choices='f32 f16 bf16 i8 u8' ;;
            --rows-on) choices='device host' ;;
            --nlist) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'model info')
            options='--device --quiet --json'
            case $previous in
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'model tokenize')
            options='--prompt --in --field --plain --json'
            case $previous in
            --prompt) compopt +o default 2>/dev/null; return ;;
            --in) return ;;
            --field) compopt +o default 2>/dev/null; return ;;
            esac
            ;;
        'model embed')
            options='--in --out --field --prompt --dimensions --pooling --precise --device --quiet --json'
            case $previous in
            --in) return ;;
            --out) return ;;
            --field) compopt +o default 2>/dev/null; return ;;
            --prompt) compopt +o default 2>/dev/null; return ;;
            --dimensions) compopt +o default 2>/dev/null; return ;;
            --pooling) choices='file mean cls last' ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'model rerank')
            options='--query --in --field --top --precise --device --quiet --json'
            case $previous in
            --query) compopt +o default 2>/dev/null; return ;;
            --in) return ;;
            --field) compopt +o default 2>/dev/null; return ;;
            --top) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'model logits')
            options='--prompt --out --plain --cache --precise --device --quiet --json'
            case $previous in
            --prompt) compopt +o default 2>/dev/null; return ;;
            --out) return ;;
            --cache) choices='f16 f32 q8_0' ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'model generate')
            options='--prompt --plain -n --chat --system --chat-template --ignore-eos --temperature --top-k --top-p --min-p --repetition-penalty --repetition-window --seed --grammar --json-schema --cache --precise --device --quiet --json'
            case $previous in
            --prompt) compopt +o default 2>/dev/null; return ;;
            -n) compopt +o default 2>/dev/null; return ;;
            --system) compopt +o default 2>/dev/null; return ;;
            --chat-template) return ;;
            --temperature) compopt +o default 2>/dev/null; return ;;
            --top-k) compopt +o default 2>/dev/null; return ;;
            --top-p) compopt +o default 2>/dev/null; return ;;
            --min-p) compopt +o default 2>/dev/null; return ;;
            --repetition-penalty) compopt +o default 2>/dev/null; return ;;
            --repetition-window) compopt +o default 2>/dev/null; return ;;
            --seed) compopt +o default 2>/dev/null; return ;;
            --grammar) return ;;
            --json-schema) return ;;
            --cache) choices='f16 f32 q8_0' ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'model chat')
            options='--system --chat-template -n --temperature --top-k --top-p --min-p --repetition-penalty --repetition-window --seed --grammar --json-schema --cache --precise --device --quiet'
            case $previous in
            --system) compopt +o default 2>/dev/null; return ;;
            --chat-template) return ;;
            -n) compopt +o default 2>/dev/null; return ;;
            --temperature) compopt +o default 2>/dev/null; return ;;
            --top-k) compopt +o default 2>/dev/null; return ;;
            --top-p) compopt +o default 2>/dev/null; return ;;
            --min-p) compopt +o default 2>/dev/null; return ;;
            --repetition-penalty) compopt +o default 2>/dev/null; return ;;
            --repetition-window) compopt +o default 2>/dev/null; return ;;
            --seed) compopt +o default 2>/dev/null; return ;;
            --grammar) return ;;
            --json-schema) return ;;
            --cache) choices='f16 f32 q8_0' ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'model fetch')
            options='--out --sha256 --member --quiet'
            case $previous in
            --out) return ;;
            --sha256) compopt +o default 2>/dev/null; return ;;
            --member) compopt +o default 2>/dev/null; return ;;
            esac
            ;;
        'model list')
            options='--json'
            case $previous in
            esac
            ;;
        'serve')
            options='--model --chat-template --listen --device --api-key-file --read-only-key-file --no-auth --follow --table --vector --text --payload --metric --publication --tls-cert --tls-key --host --cors --access-log --queue-limit --body-limit --body-memory --disk-reserve --connections --timeout --drain --http-threads --workers'
            case $previous in
            --model) compopt +o default 2>/dev/null; return ;;
            --chat-template) return ;;
            --listen) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            --api-key-file) return ;;
            --read-only-key-file) return ;;
            --follow) compopt +o default 2>/dev/null; return ;;
            --table) compopt +o default 2>/dev/null; return ;;
            --vector) compopt +o default 2>/dev/null; return ;;
            --text) compopt +o default 2>/dev/null; return ;;
            --payload) compopt +o default 2>/dev/null; return ;;
            --metric) choices='cosine l2 dot' ;;
            --publication) compopt +o default 2>/dev/null; return ;;
            --tls-cert) return ;;
            --tls-key) return ;;
            --host) compopt +o default 2>/dev/null; return ;;
            --cors) compopt +o default 2>/dev/null; return ;;
            --access-log) return ;;
            --queue-limit) compopt +o default 2>/dev/null; return ;;
            --body-limit) compopt +o default 2>/dev/null; return ;;
            --body-memory) compopt +o default 2>/dev/null; return ;;
            --disk-reserve) compopt +o default 2>/dev/null; return ;;
            --connections) compopt +o default 2>/dev/null; return ;;
            --timeout) compopt +o default 2>/dev/null; return ;;
            --drain) compopt +o default 2>/dev/null; return ;;
            --http-threads) compopt +o default 2>/dev/null; return ;;
            --workers) compopt +o default 2>/dev/null; return ;;
            esac
            ;;
        'gguf info')
            options='--json'
            case $previous in
            esac
            ;;
        'gguf verify')
            options='--device --quiet --json'
            case $previous in
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'gguf quantize')
            options='--type --pure --device --quiet --json'
            case $previous in
            --type) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'gguf from-safetensors')
            options='--type --pooling --device --quiet --json'
            case $previous in
            --type) compopt +o default 2>/dev/null; return ;;
            --pooling) choices='folder mean cls last' ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'gguf diff')
            options='--device --json'
            case $previous in
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'safetensors info')
            options='--json'
            case $previous in
            esac
            ;;
        'quant encode')
            options='--type --cols --device --quiet'
            case $previous in
            --type) compopt +o default 2>/dev/null; return ;;
            --cols) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'quant decode')
            options='--type --cols --device --quiet'
            case $previous in
            --type) compopt +o default 2>/dev/null; return ;;
            --cols) compopt +o default 2>/dev/null; return ;;
            --device) choices='auto cpu cuda rocm' ;;
            esac
            ;;
        'version')
            options=''
            case $previous in
            esac
            ;;
        'help')
            options='--json'
            case $previous in
            esac
            ;;
        esac
        if [ -z "$choices" ] && [[ $word == -* ]]; then
            choices="$options --help"
        fi
    fi
    [ -z "$choices" ] || mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -o default -F _warpwave warpwave
