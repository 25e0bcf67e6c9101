/* SPDX-License-Identifier: BSD-2-Clause */
/* The verbs that there are, and the groups that some of them form. */
#include <string.h>

#include "cmd.h"

const struct cmd *const cmds[] = {
	&cmd_sites,
	&cmd_trace,
	&cmd_layout,
	&cmd_decode,
	&cmd_bind,
	&cmd_addr,
	&cmd_stack,
	&cmd_unwind_check,
	&cmd_unwind_dump,
	&cmd_unwind_encode,
	&cmd_code,
	&cmd_code_run,
	&cmd_sidecar,
	&cmd_btf_dump,
	&cmd_btf_check,
	&cmd_btf_convert,
	&cmd_btf_encode,
	&cmd_btf_dedup,
	&cmd_btf_merge,
	&cmd_btf_distil,
	&cmd_doctor,
	NULL,
};

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
