#compdef pawl
# Completion of pawl for zsh, made by `pawl completion zsh`.
# In ~/.zshrc, after compinit: eval "$(pawl completion zsh)"; or keep it as _pawl in a folder of
# $fpath, and make it anew after an update.
_pawl_table=@TABLE@
_pawl() {
    local -a found offered
    local line files
    found=("${(@f)$(_PAWL_TABLE=$_pawl_table command pawl __complete zsh "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    for line in $found; do
        if [[ $line == ':files' ]]; then files=yes; else offered+=("$line"); fi
    done
    (( $#offered )) && _describe -V 'pawl' offered
    [[ -n $files ]] && _files
    return 0
}
if [[ $funcstack[1] == _pawl ]]; then
    _pawl "$@"
elif (( $+functions[compdef] )); then
    compdef _pawl pawl
fi
