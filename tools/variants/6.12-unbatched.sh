# Undoes the batched accounting of lazily freed areas (published in 2024, in 6.12): a purge takes every area's pages off
# vmap_lazy_nr by itself, with one atomic operation for each, instead of all pages of a list with one at its end.
base=6.12
release=6.12-unbatched

undo() {
    edit mm/vmalloc.c purge_vmap_node 'atomic_long_sub ( nr_purged_pages vmap_lazy_nr'
    edit mm/vmalloc.c purge_vmap_node 'nr_purged_pages += nr' 'atomic_long_sub(nr, &vmap_lazy_nr);'
    edit mm/vmalloc.c purge_vmap_node 'unsigned long nr_purged_pages = 0'
}
