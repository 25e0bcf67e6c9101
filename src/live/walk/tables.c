/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A file's table has a directory of the pages that have rows. In the kernel each page has a record,
 * so that one read finds it, with the number of rows before each block of 512 bytes: a search looks
 * at few rows. A page's rows are in one block of memory.
 */
#include "walk/tables.h"

#include <elf.h>
#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

/* By DWARF number. */
enum { RBX = 3, RBP = 6, RSP = 7, RA = 16, N_REGS = 16 };

enum {
	ROWS_PER_ELEMENT = 64,
	/* Of 64 KiB. No program has 4 GiB of code; the records of so many take 17 MB. */
	MAX_PAGES = 1 << 16,
};

/* ---- rules ---- */

static bool fits(int64_t value, int16_t *ret)
{
	*ret = (int16_t)value;
	return value == *ret;
}

/* How a register's word says that it is saved. */
static bool saved_of(uint32_t word, uint8_t *ret_how, int16_t *ret_off)
{
	static const uint8_t how[] = {
		[CAIRN_UNWIND_AT_CFA] = WALK_AT_CFA,   [CAIRN_UNWIND_IS_CFA] = WALK_IS_CFA,
		[CAIRN_UNWIND_AT_BASE] = WALK_AT_BASE, [CAIRN_UNWIND_AT_FP] = WALK_AT_FP,
		[CAIRN_UNWIND_IN_REG] = WALK_IN_REG,   [CAIRN_UNWIND_SAME] = WALK_SAME,
		[CAIRN_UNWIND_LOST] = WALK_NOT_SAVED,  [CAIRN_UNWIND_IS_PC] = WALK_IS_PC,
	};
	int32_t value = cairn_unwind_word_value(word);

	*ret_how = how[cairn_unwind_word_saved(word)];
	return fits(value, ret_off) && (*ret_how != WALK_IN_REG || (value >= 0 && value < N_REGS));
}

/*
 * The caller's rsp is the CFA. A signal's frame says it once more; in swapcontext() it is another
 * stack's.
 */
static bool is_cfa(const struct cairn_unwind_rule *rule, uint32_t word)
{
	int32_t value = cairn_unwind_word_value(word);

	if (cairn_unwind_word_saved(word) == CAIRN_UNWIND_IS_CFA)
		return value == 0;
	return cairn_unwind_word_saved(word) == CAIRN_UNWIND_AT_BASE &&
	       rule->cfa == CAIRN_UNWIND_CFA_DEREF && rule->off == value && !rule->add;
}

static bool take_words(const struct cairn_unwind_rule *rule, struct walk_rule *ret)
{
	uint8_t bx = WALK_SAME, fp = WALK_SAME, ra = WALK_AT_CFA;

	ret->ra_off = -8;
	for (uint32_t i = 0; i < rule->n_regs; i++) {
		uint32_t word = cairn_unwind_words(rule)[i];
		unsigned int reg = cairn_unwind_word_reg(word);

		if (reg == RSP && !is_cfa(rule, word))
			return false;
		if (reg == RBX && !saved_of(word, &bx, &ret->bx_off))
			return false;
		if (reg == RBP && !saved_of(word, &fp, &ret->fp_off))
			return false;
		if (reg == RA && !saved_of(word, &ra, &ret->ra_off))
			return false;
	}
	ret->cfa |= (uint8_t)(bx << 4);
	ret->fp_ra = (uint8_t)(fp | ra << 4);
	/* "Unchanged" means nothing for x86-64, whose return address is in no register. */
	return ra != WALK_SAME;
}

bool tables_rule(const struct cairn_unwind_rule *rule, struct walk_rule *ret)
{
	*ret = (struct walk_rule){0};
	if (rule->flags & CAIRN_UNWIND_OUTERMOST) {
		ret->cfa = WALK_CFA_REG;
		ret->flags = WALK_OUTERMOST;
		return true;
	}
	if (rule->cfa == CAIRN_UNWIND_UNDESCRIBED)
		return true;
	ret->cfa = rule->cfa == CAIRN_UNWIND_CFA_DEREF ? WALK_CFA_DEREF : WALK_CFA_REG;
	ret->flags = rule->flags & CAIRN_UNWIND_SIGNAL ? WALK_SIGNAL : 0;
	ret->reg = rule->reg;
	ret->off = rule->off;
	return rule->reg < N_REGS && fits(rule->add, &ret->add) && take_words(rule, ret);
}

/* Whether it is known; its number, or the key for it. */
static bool find_rule(const struct walk_tables *t, const struct walk_rule *rule, uint64_t *ret_key,
		      uint64_t *ret_number)
{
	/* The next key for a rule of the same hash. */
	for (*ret_key = map_hash_bytes(rule, sizeof(*rule));
	     map_get(&t->rule_ids, *ret_key, ret_number); ++*ret_key)
		if (memcmp(&t->rules[*ret_number], rule, sizeof(*rule)) == 0)
			return true;
	return false;
}

bool tables_has_rule(const struct walk_tables *t, const struct walk_rule *rule)
{
	uint64_t key, number;

	return rule->cfa == WALK_CFA_NONE || find_rule(t, rule, &key, &number);
}

int tables_number(struct walk_tables *t, const struct walk_rule *rule, uint16_t *ret)
{
	uint64_t key, number;

	*ret = 0;
	if (rule->cfa == WALK_CFA_NONE)
		return 0;
	if (find_rule(t, rule, &key, &number)) {
		*ret = (uint16_t)number;
		return 0;
	}
	if (t->n_rules >= WALK_MAX_RULES) {
		t->n_unsaid++;
		return 0;
	}
	number = t->n_rules++;
	t->rules[number] = *rule;
	*ret = (uint16_t)number;
	return map_put(&t->rule_ids, key, number);
}

/* ---- rows ---- */

/* A file while it is added. Its table numbers rules by their place: the numbers here. */
struct adding {
	struct walk_tables *t;
	const struct unwind_table *from;
	struct map known; /* rule's place in the table -> number here */
	struct cairn_err *err;
};

static int rule_of_row(struct adding *a, uint32_t row, uint16_t *ret)
{
	uint64_t place = unwind_table_rule(a->from, row), number;
	struct cairn_vaddr lo, hi;
	struct walk_rule rule;

	if (map_get(&a->known, place, &number)) {
		*ret = (uint16_t)number;
		return 0;
	}
	if (!tables_rule(unwind_table_row(a->from, row, &lo, &hi), &rule)) {
		a->t->n_unsaid++;
		rule = (struct walk_rule){0};
	}
	int rc = tables_number(a->t, &rule, ret);
	return rc < 0 ? rc : map_put(&a->known, place, *ret);
}

/* Room for a page's rows, together in one block. */
int tables_reserve_rows(struct walk_tables *t, uint32_t n, struct cairn_err *err)
{
	if (t->rows.blocks.n && t->row_next + n <= WALK_CHUNK_ROWS)
		return 0;
	int rc = chunks_grow(&t->rows, err);
	if (rc < 0)
		return rc;
	t->row_block = (uint32_t)rc;
	t->row_next = 0;
	return 0;
}

static uint16_t off_of_row(const struct unwind_table *t, uint32_t row)
{
	return t->wide ? t->wide[row].off : t->rows[row].off;
}

/* Room for a page's rows: where a file's were that is gone, or after the last ones. */
static int take_rows(struct walk_tables *t, struct walk_page *page, struct cairn_err *err)
{
	uint32_t block, first;
	int rc;

	if (gaps_take(&t->row_gaps, page->n_rows, &block, &first)) {
		page->chunk = block;
		page->first = first;
		return 0;
	}
	rc = tables_reserve_rows(t, page->n_rows, err);
	page->chunk = t->row_block;
	page->first = t->row_next;
	t->row_next += rc < 0 ? 0 : page->n_rows;
	return rc;
}

/* The record of a page with the rows [@row, @row + @n), and its rows. */
static int add_page(struct adding *a, struct walk_page *page, uint32_t row, uint32_t n)
{
	struct walk_tables *t = a->t;
	uint32_t block = 0;
	int rc;

	/* A page has at most 65,536 rows; the last of so many is left out. */
	page->n_rows = (uint16_t)(n > UINT16_MAX ? UINT16_MAX : n);
	rc = take_rows(t, page, a->err);
	if (rc < 0) {
		page->n_rows = 0;
		return rc;
	}
	t->n_rows += page->n_rows;
	struct walk_row *to = (struct walk_row *)t->rows.blocks.p[page->chunk] + page->first;
	for (uint32_t i = 0; i < page->n_rows; i++) {
		to[i].off = off_of_row(a->from, row + i);
		for (; block <= (uint32_t)to[i].off >> WALK_BLOCK_SHIFT; block++)
			page->begins[block] = (uint16_t)i;
		rc = rule_of_row(a, row + i, &to[i].rule);
		if (rc < 0)
			return err_nomem(a->err, "rules of an unwind table");
	}
	for (; block < WALK_BLOCKS; block++)
		page->begins[block] = page->n_rows;
	return 0;
}

/* All pages of the file; those without rows have the rule of the last row before them. */
static int add_pages(struct adding *a, uint64_t base, uint32_t n_pages, uint32_t first)
{
	uint64_t skip = a->from->base >= base ? (a->from->base - base) >> WALK_PAGE_SHIFT : 0;
	uint16_t before = 0;
	uint32_t i = 0;
	int rc = 0;

	for (uint32_t p = 0; p < n_pages && rc == 0; p++) {
		struct walk_page *page = chunks_at(&a->t->pages, first + p);
		const struct cairn_unwind_page *dir = &a->from->pages[i];

		memset(page, 0, sizeof(*page));
		page->before = before;
		if (p < skip || i == a->from->n_pages || dir->page != p - skip)
			continue;
		rc = add_page(a, page, dir->first_row, dir[1].first_row - dir->first_row);
		if (rc == 0 && dir[1].first_row > dir->first_row)
			rc = rule_of_row(a, dir[1].first_row - 1, &before);
		i++;
	}
	return rc;
}

int tables_reserve_pages(struct walk_tables *t, uint32_t n, struct cairn_err *err)
{
	int rc = 0;

	while (rc >= 0 && t->n_pages + (size_t)n > t->pages.blocks.n * WALK_CHUNK_PAGES)
		rc = chunks_grow(&t->pages, err);
	return rc < 0 ? rc : 0;
}

/* Records of @n pages that follow each other. */
static int take_pages(struct walk_tables *t, uint32_t n, uint32_t *ret, struct cairn_err *err)
{
	uint32_t block;
	int rc;

	if (gaps_take(&t->page_gaps, n, &block, ret))
		return 0;
	rc = tables_reserve_pages(t, n, err);
	*ret = t->n_pages;
	t->n_pages += rc < 0 ? 0 : n;
	return rc;
}

int tables_add(struct walk_tables *t, const struct unwind_table *table, uint64_t base,
	       struct walk_pages *ret, struct cairn_err *err)
{
	struct adding a = {.t = t, .from = table, .err = err};

	*ret = (struct walk_pages){0};
	if (!table->n_pages || table->machine != EM_X86_64 || table->base < base)
		return 0;
	uint64_t n = ((table->base - base) >> WALK_PAGE_SHIFT) +
		     table->pages[table->n_pages - 1].page + 1;
	if (n > MAX_PAGES)
		return err_set(err, -E2BIG, "its code spans more than 4 GiB");
	uint32_t first;
	int rc = take_pages(t, (uint32_t)n, &first, err);
	if (rc < 0)
		return rc;
	rc = add_pages(&a, base, (uint32_t)n, first);
	map_fini(&a.known);
	if (rc < 0)
		tables_drop(t, (struct walk_pages){first, (uint32_t)n});
	else
		*ret = (struct walk_pages){first, (uint32_t)n};
	return rc;
}

void tables_drop(struct walk_tables *t, struct walk_pages pages)
{
	int rc = gaps_give(&t->page_gaps, 0, pages.first, pages.n);

	for (uint32_t i = 0; i < pages.n; i++) {
		struct walk_page *page = chunks_at(&t->pages, pages.first + i);

		t->n_rows -= page->n_rows;
		rc = gaps_give(&t->row_gaps, page->chunk, page->first, page->n_rows) | rc;
		memset(page, 0, sizeof(*page));
	}
	t->n_unsaid += rc < 0;
}

/* ---- the whole ---- */

static size_t rules_bytes(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	return ((WALK_MAX_RULES + 1) * sizeof(struct walk_rule) + page - 1) / page * page;
}

int tables_init(struct walk_tables *t, int rows_fd, int pages_fd, int rules_fd,
		struct cairn_err *err)
{
	*t = (struct walk_tables){.n_rules = WALK_RULE_OUTERMOST + 1};
	chunks_init(&t->rows, "rows", rows_fd, ROWS_PER_ELEMENT * sizeof(struct walk_row),
		    WALK_CHUNK_ROWS / ROWS_PER_ELEMENT);
	chunks_init(&t->pages, "pages", pages_fd, sizeof(struct walk_page), WALK_CHUNK_PAGES);
	int how = rules_fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
	void *rules = mmap(NULL, rules_bytes(), PROT_READ | PROT_WRITE, how, rules_fd, 0);
	if (rules == MAP_FAILED)
		return err_set(err, -errno, "mapping the rules: %s", strerror(errno));
	t->rules = rules;
	t->rules[WALK_RULE_OUTERMOST] =
		(struct walk_rule){.cfa = WALK_CFA_REG, .flags = WALK_OUTERMOST};
	uint64_t key = map_hash_bytes(&t->rules[WALK_RULE_OUTERMOST], sizeof(*t->rules));
	if (map_put(&t->rule_ids, key, WALK_RULE_OUTERMOST) < 0)
		return err_nomem(err, "the rules");
	return 0;
}

void tables_fini(struct walk_tables *t)
{
	chunks_fini(&t->rows);
	chunks_fini(&t->pages);
	map_fini(&t->rule_ids);
	gaps_fini(&t->row_gaps);
	gaps_fini(&t->page_gaps);
	for (size_t i = 0; i < WALK_ROW_CLASSES; i++)
		VEC_FREE(&t->unused_rows[i]);
	VEC_FREE(&t->unused_pages);
	if (t->rules)
		munmap(t->rules, rules_bytes());
}
