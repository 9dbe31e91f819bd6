# Completion of pawl for bash, made by `pawl completion bash`.
# In ~/.bashrc: eval "$(pawl completion bash)"; or keep it in
# ~/.local/share/bash-completion/completions/pawl, and make it anew after an update.
_pawl_table=@TABLE@
_pawl() {
    local line cur=${COMP_WORDS[COMP_CWORD]}
    COMPREPLY=()
    while IFS= read -r line; do
        if [ "$line" = ":files" ]; then
            compopt -o filenames 2>/dev/null
            while IFS= read -r line; do COMPREPLY+=("$line"); done < <(compgen -f -- "$cur")
        else
            COMPREPLY+=("$line")
        fi
    done < <(_PAWL_TABLE=$_pawl_table COMP_WORDBREAKS=$COMP_WORDBREAKS \
        command pawl __complete bash "${COMP_LINE:0:COMP_POINT}" 2>/dev/null)
    case ${COMPREPLY[0]} in --*=) compopt -o nospace 2>/dev/null ;; esac
}
complete -F _pawl pawl
