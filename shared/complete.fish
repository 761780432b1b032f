# fish completion of PROGRAM
function __FUNCTION_complete
	set -l words (commandline -opc)
	set -l word (commandline -ct)
	set -l program $words[1]
	set -e words[1]
	for line in ($program __complete $words "$word" 2>/dev/null)
		switch $line
			case :0
				__fish_complete_path (string replace -r -- '^--[^=]*=' '' $word)
			case :16
				__fish_complete_directories (string replace -r -- '^--[^=]*=' '' $word)
			case ':*'
			case '*'
				echo $line
		end
	end
end
complete -c PROGRAM -f -a '(__FUNCTION_complete)'
