# Completion of the command `warpwave` for bash. It asks the command's own help for commands, options and their choices, so that it
# knows what the installed command knows.
_warpwave()
{
    local program=${COMP_WORDS[0]} word=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]:-} help choices=''
    COMPREPLY=()
    if [ "$COMP_CWORD" -eq 1 ] || { [ "$COMP_CWORD" -eq 2 ] && [ "$command" = help ]; }; then
        choices=$("$program" help 2>/dev/null | sed -n '/^Commands:/,/^$/s/^  \([a-z][a-z]*\) .*/\1/p')
        mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
        return
    fi
    help=$("$program" help "$command" 2>/dev/null) || return
    case $previous in
    --device)
        # A colon ends a word for bash, so that a device's number is left to type.
        choices="auto cpu cuda rocm"
        ;;
    -*)
        # "  --metric cosine|l2|dot ...": the choices; "  --base FILE": a file, which is bash's own completion; "  -k N": nothing.
        choices=$(sed -n "s/^  $previous \([^ ]*\).*/\1/p" <<<"$help" | head -n 1)
        case $choices in
        *'|'*) choices=${choices//|/ } ;;
        [A-Z] | '') choices= ;;
        *) return ;;
        esac
        ;;
    esac
    if [ -z "$choices" ] && [[ $word == -* ]]; then
        choices="$(sed -n 's/^  \(-[-a-z]*\).*/\1/p' <<<"$help") --help"
    elif [ -z "$choices" ] && [ "$COMP_CWORD" -eq 2 ]; then
        choices=$(sed -n '/^Actions:/,$s/^  \([a-z][a-z]*\) .*/\1/p' <<<"$help")
        [ -n "$choices" ] || choices=$(sed -n '/^usage:/,/^$/s/.* \([a-z|]*|[a-z]*\) IN OUT.*/\1/p' <<<"$help" | tr '|' ' ')
    fi
    [ -z "$choices" ] || mapfile -t COMPREPLY < <(compgen -W "$choices" -- "$word")
}
complete -o default -F _warpwave warpwave
