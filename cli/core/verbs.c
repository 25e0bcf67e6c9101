/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs that there are, and the groups that some of them form. */
#include <string.h>

#include "cmd.h"

/* In the order of help: by topic. */
/* clang-format off */
const struct cmd *const cmds[] = {
	&cmd_sites,	    &cmd_trace,	    &cmd_run, &cmd_stack,	       &cmd_addr,
	&cmd_code,	    &cmd_code_run,  &cmd_unwind_check, &cmd_unwind_dump,
	&cmd_unwind_encode, &cmd_profile, &cmd_profile_show, &cmd_profile_diff, &cmd_profile_push, &cmd_layout,    &cmd_decode,       &cmd_bind,
	&cmd_btf_dump,	    &cmd_btf_check, &cmd_btf_convert,  &cmd_btf_encode,
	&cmd_btf_dedup,	    &cmd_btf_merge, &cmd_btf_distil,   &cmd_sidecar,
	&cmd_doctor,	    NULL,
};
/* clang-format on */

const char *cmd_topic(const struct cmd *cmd)
{
	if (cmd == &cmd_sites)
		return "Code";
	if (cmd == &cmd_layout)
		return "Types";
	return cmd == &cmd_sidecar ? "House" : NULL;
}

size_t cmd_group_length(const struct cmd *cmd)
{
	const char *blank = strchr(cmd->name, ' ');

	return blank ? (size_t)(blank - cmd->name) : 0;
}

bool cmd_is_in_group(const struct cmd *cmd, const char *group, size_t len)
{
	return len && cmd_group_length(cmd) == len && !memcmp(cmd->name, group, len);
}

bool cmd_group_is_verb(const struct cmd *in_group)
{
	size_t len = cmd_group_length(in_group);

	for (const struct cmd *const *cmd = cmds; *cmd; cmd++)
		if (strlen((*cmd)->name) == len && !memcmp((*cmd)->name, in_group->name, len))
			return true;
	return false;
}

const struct cmd *cmd_next_group(const struct cmd *const **cmd)
{
	while (**cmd && !cmd_group_length(**cmd))
		++*cmd;
	const struct cmd *first = **cmd;

	while (**cmd && cmd_is_in_group(**cmd, first->name, cmd_group_length(first)))
		++*cmd;
	return first;
}

const char *current_spelling(const char *word, size_t len)
{
	static const struct {
		const char *before, *now;
	} spellings[] = {{"pack", "sidecar"}, {"places", "sites"}};

	for (size_t i = 0; i < sizeof(spellings) / sizeof(spellings[0]); i++)
		if (strlen(spellings[i].before) == len && !memcmp(spellings[i].before, word, len))
			return spellings[i].now;
	return NULL;
}
