# Completion of pawl for fish, made by `pawl completion fish`.
# pawl completion fish > ~/.config/fish/completions/pawl.fish; make it anew after an update.
set -g _pawl_table @TABLE@
function _pawl
    set -l words (commandline -opc) (commandline -ct)
    set -lx _PAWL_TABLE $_pawl_table
    for line in (command pawl __complete fish $words[2..-1] 2>/dev/null)
        if test "$line" = ":files"
            __fish_complete_path (commandline -ct)
        else
            echo $line
        end
    end
end
complete -c pawl -f -a '(_pawl)'
