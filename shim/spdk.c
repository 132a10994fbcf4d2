/*
 * stacktune's way into the operator's SPDK: all that it calls of it, and all that it knows of its
 * structures, which change from release to release. What is on the other side is src/load/spdk/shim.rs.
 *
 * A drive is attached once and known by its PCI address. A worker, which is one thread's, has a queue
 * pair on each namespace of its class, pages in memory that the drives reach, and a list of what was
 * complete at its last poll.
 */
#include <stdatomic.h>

#include <spdk/stdinc.h>
#include <spdk/env.h>
#include <spdk/log.h>
#include <spdk/nvme.h>
#include <spdk/version.h>

#if SPDK_VERSION < SPDK_VERSION_NUM(22, 9, 0)
#error "stacktune wants SPDK 22.09 or later"
#endif

/* DPDK's headers are not always there where SPDK's are. */
extern const char *rte_version(void);

/* A command that takes longer is aborted, as by Linux's own driver. */
#define PATIENCE_US (30 * 1000 * 1000)
/* SPDK takes fewer where it or the drive has a lower limit. */
#define QUEUE_ENTRIES_MAX 4096
#define ADDRESS_BYTES 32
/* Of the addresses at which SPDK has its memory. */
#define MEMORY_ADDRESS_BITS 48

enum stacktune_kind { STACKTUNE_READ, STACKTUNE_WRITE, STACKTUNE_WRITE_DURABLE, STACKTUNE_FLUSH };

struct stacktune_drive {
	struct stacktune_drive *next;
	char address[ADDRESS_BYTES];
	struct spdk_nvme_ctrlr *ctrlr;
	/* The errno for which its workers end; 0 while it works. */
	atomic_int failed;
};

struct stacktune_done {
	uint32_t slot;
	/* The status field of the completion without its phase tag (Base 3.3.3.2.1). */
	uint32_t status;
};

struct stacktune_op {
	struct stacktune_worker *worker;
	uint32_t slot;
};

struct stacktune_lane {
	struct stacktune_drive *drive;
	struct spdk_nvme_ns *ns;
	struct spdk_nvme_qpair *queue;
	uint32_t sector_bytes;
};

struct stacktune_worker {
	uint8_t *pages;
	uint64_t page_bytes;
	struct stacktune_op *ops;
	struct stacktune_done *done;
	uint32_t done_count;
	uint32_t lane_count;
	struct stacktune_lane lanes[];
};

/* Only the thread that attaches and ends changes the list, and no worker runs then. */
static struct stacktune_drive *g_drives;

const char *
stacktune_spdk_version(void)
{
	return SPDK_VERSION_STRING;
}

const char *
stacktune_dpdk_version(void)
{
	return rte_version();
}

/* Whether an IOMMU of Intel's is before a drive that can't take all of SPDK's addresses: a virtual machine's often has
 * 39 bits. SPDK 25.09 and later look for that only where the processor is Intel's too, and DPDK then refuses all memory
 * with ENOMEM. */
static bool
has_narrow_iommu(const char *address)
{
	unsigned long long capabilities;
	char path[64 + ADDRESS_BYTES];
	FILE *file;
	int found;

	snprintf(path, sizeof(path), "/sys/bus/pci/devices/%s/iommu/intel-iommu/cap", address);
	file = fopen(path, "r");
	if (file == NULL) {
		return false;
	}
	found = fscanf(file, "%llx", &capabilities);
	fclose(file);
	/* Its Maximum Guest Address Width. */
	return found == 1 && ((capabilities >> 16) & 0x3f) + 1 < MEMORY_ADDRESS_BITS;
}

/* Sets SPDK's environment up for these drives and no others. `core` is a CPU of this process's. */
int
stacktune_spdk_begin(uint32_t core, const char *const *addresses, size_t count)
{
	struct spdk_env_opts opts;
	struct spdk_pci_addr *allowed;
	char cores[16];
	bool is_narrow = false;
	size_t i;
	int rc;

	allowed = calloc(count, sizeof(*allowed));
	if (allowed == NULL) {
		return -ENOMEM;
	}
	for (i = 0; i < count; i++) {
		if (spdk_pci_addr_parse(&allowed[i], addresses[i]) != 0) {
			free(allowed);
			return -EINVAL;
		}
		is_narrow |= has_narrow_iommu(addresses[i]);
	}
	spdk_log_set_print_level(SPDK_LOG_WARN);
	memset(&opts, 0, sizeof(opts));
#if SPDK_VERSION >= SPDK_VERSION_NUM(24, 9, 0)
	opts.opts_size = sizeof(opts);
#endif
	spdk_env_opts_init(&opts);
	snprintf(cores, sizeof(cores), "[%u]", core);
	opts.name = "stacktune";
	opts.core_mask = cores;
	opts.pci_allowed = allowed;
	opts.num_pci_addr = count;
	if (is_narrow) {
		opts.iova_mode = "pa";
	}
	rc = spdk_env_init(&opts);
	free(allowed);
	return rc;
}

struct stacktune_drive *
stacktune_drive_find(const char *address)
{
	struct stacktune_drive *drive;

	for (drive = g_drives; drive != NULL; drive = drive->next) {
		if (strcmp(drive->address, address) == 0) {
			return drive;
		}
	}
	return NULL;
}

/* An abort that the drive can't do, or does not find the command for, leaves a command that hangs. */
static void
aborted(void *arg, const struct spdk_nvme_cpl *cpl)
{
	struct stacktune_drive *drive = arg;

	if (spdk_nvme_cpl_is_error(cpl) || (cpl->cdw0 & 1) != 0) {
		atomic_store(&drive->failed, ETIMEDOUT);
	}
}

static void
timed_out(void *arg, struct spdk_nvme_ctrlr *ctrlr, struct spdk_nvme_qpair *queue, uint16_t cid)
{
	struct stacktune_drive *drive = arg;

	/* Of the admin queue it is a command such as the abort itself. */
	if (queue == NULL || spdk_nvme_ctrlr_cmd_abort(ctrlr, queue, cid, aborted, drive) != 0) {
		atomic_store(&drive->failed, ETIMEDOUT);
	}
}

struct stacktune_drive *
stacktune_drive_attach(const char *address)
{
	struct spdk_nvme_transport_id id;
	struct spdk_nvme_ctrlr_opts opts;
	struct stacktune_drive *drive;

	drive = calloc(1, sizeof(*drive));
	if (drive == NULL) {
		return NULL;
	}
	memset(&id, 0, sizeof(id));
	spdk_nvme_trid_populate_transport(&id, SPDK_NVME_TRANSPORT_PCIE);
	snprintf(id.traddr, sizeof(id.traddr), "%s", address);
	spdk_nvme_ctrlr_get_default_ctrlr_opts(&opts, sizeof(opts));
	opts.io_queue_size = QUEUE_ENTRIES_MAX;
	drive->ctrlr = spdk_nvme_connect(&id, &opts, sizeof(opts));
	if (drive->ctrlr == NULL) {
		free(drive);
		return NULL;
	}
	snprintf(drive->address, sizeof(drive->address), "%s", address);
	spdk_nvme_ctrlr_register_timeout_callback(drive->ctrlr, PATIENCE_US, PATIENCE_US, timed_out, drive);
	drive->next = g_drives;
	g_drives = drive;
	return drive;
}

/* Bytes that a command moves at most, of an active namespace; 0 where it is none. */
uint32_t
stacktune_drive_transfer_max(struct stacktune_drive *drive, uint32_t nsid)
{
	struct spdk_nvme_ns *ns = spdk_nvme_ctrlr_get_ns(drive->ctrlr, nsid);

	return ns != NULL && spdk_nvme_ns_is_active(ns) ? spdk_nvme_ns_get_max_io_xfer_size(ns) : 0;
}

/* Bytes of metadata of a block, for which the pages have no room. */
uint32_t
stacktune_drive_metadata_bytes(struct stacktune_drive *drive, uint32_t nsid)
{
	struct spdk_nvme_ns *ns = spdk_nvme_ctrlr_get_ns(drive->ctrlr, nsid);

	return ns != NULL ? spdk_nvme_ns_get_md_size(ns) : 0;
}

/* What no worker does: the admin queue, and whether a drive is still there. To be called now and then. */
void
stacktune_spdk_attend(void)
{
	struct stacktune_drive *drive;
	struct spdk_pci_device *device;
	union spdk_nvme_csts_register csts;

	for (drive = g_drives; drive != NULL; drive = drive->next) {
		csts = spdk_nvme_ctrlr_get_regs_csts(drive->ctrlr);
		device = spdk_nvme_ctrlr_get_pci_device(drive->ctrlr);
		if (csts.raw == UINT32_MAX || (device != NULL && spdk_pci_device_is_removed(device))) {
			atomic_store(&drive->failed, ENODEV);
		} else if (csts.bits.cfs || spdk_nvme_ctrlr_process_admin_completions(drive->ctrlr) < 0) {
			atomic_store(&drive->failed, EIO);
		}
	}
}

/* Lets go of all drives. No worker may be left. */
void
stacktune_spdk_end(void)
{
	struct stacktune_drive *drive;

	while ((drive = g_drives) != NULL) {
		g_drives = drive->next;
		spdk_nvme_detach(drive->ctrlr);
		free(drive);
	}
	spdk_env_fini();
}

void
stacktune_worker_free(struct stacktune_worker *worker)
{
	bool reached = false;
	uint32_t i;

	worker->done_count = 0;
	for (i = 0; i < worker->lane_count; i++) {
		if (worker->lanes[i].queue != NULL) {
			reached |= atomic_load(&worker->lanes[i].drive->failed) != 0;
			spdk_nvme_ctrlr_free_io_qpair(worker->lanes[i].queue);
		}
	}
	/* A drive that has failed may still write to them. */
	if (!reached) {
		spdk_free(worker->pages);
	}
	free(worker->ops);
	free(worker->done);
	free(worker);
}

static uint64_t
smaller(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static uint64_t
larger(uint64_t a, uint64_t b)
{
	return a > b ? a : b;
}

static int
open_lane(struct stacktune_lane *lane, uint64_t page_bytes, uint32_t slots, uint32_t flush_slots)
{
	struct spdk_nvme_io_qpair_opts opts;
	uint64_t parts, commands, requests;

	if (lane->ns == NULL || !spdk_nvme_ns_is_active(lane->ns)) {
		return -ENXIO;
	}
	lane->sector_bytes = spdk_nvme_ns_get_sector_size(lane->ns);
	if (page_bytes < lane->sector_bytes) {
		return -EINVAL;
	}
	/* SPDK splits what is larger than a command; one more, should it start amid a stripe of the drive. */
	parts = page_bytes / spdk_nvme_ns_get_max_io_xfer_size(lane->ns) + 1;
	commands = slots * parts + flush_slots + 1;
	requests = slots * (parts + 1) + flush_slots + 1;
	spdk_nvme_ctrlr_get_default_io_qpair_opts(lane->drive->ctrlr, &opts, sizeof(opts));
	opts.io_queue_size = larger(2, smaller(commands, opts.io_queue_size));
	opts.io_queue_requests = larger(requests, opts.io_queue_size);
	/* One doorbell for all that is handed over between two looks. */
	opts.delay_cmd_submit = true;
	lane->queue = spdk_nvme_ctrlr_alloc_io_qpair(lane->drive->ctrlr, &opts, sizeof(opts));
	return lane->queue != NULL ? 0 : -EBUSY;
}

/* A worker of the calling thread on these namespaces; a negative errno in `*why` where there is none:
 * ENOMEM is no memory that drives reach, EBUSY no queue pair left. */
struct stacktune_worker *
stacktune_worker_new(struct stacktune_drive *const *drives, const uint32_t *nsids, uint32_t count,
		     uint64_t page_bytes, uint32_t slots, uint32_t flush_slots, int *why)
{
	struct stacktune_worker *worker;
	uint32_t i, ops = slots + flush_slots;

	*why = -ENOMEM;
	worker = calloc(1, sizeof(*worker) + count * sizeof(worker->lanes[0]));
	if (worker == NULL) {
		return NULL;
	}
	worker->page_bytes = page_bytes;
	worker->ops = calloc(ops, sizeof(*worker->ops));
	worker->done = calloc(ops, sizeof(*worker->done));
	worker->pages = spdk_zmalloc(slots * page_bytes, 0x1000, NULL, SPDK_ENV_SOCKET_ID_ANY, SPDK_MALLOC_DMA);
	if (worker->ops == NULL || worker->done == NULL || worker->pages == NULL) {
		stacktune_worker_free(worker);
		return NULL;
	}
	for (i = 0; i < ops; i++) {
		worker->ops[i].worker = worker;
		worker->ops[i].slot = i;
	}
	for (i = 0; i < count; i++) {
		worker->lane_count = i + 1;
		worker->lanes[i].drive = drives[i];
		worker->lanes[i].ns = spdk_nvme_ctrlr_get_ns(drives[i]->ctrlr, nsids[i]);
		*why = open_lane(&worker->lanes[i], page_bytes, slots, flush_slots);
		if (*why != 0) {
			stacktune_worker_free(worker);
			return NULL;
		}
	}
	return worker;
}

uint8_t *
stacktune_worker_pages(struct stacktune_worker *worker)
{
	return worker->pages;
}

static void
complete(void *arg, const struct spdk_nvme_cpl *cpl)
{
	struct stacktune_op *op = arg;
	struct stacktune_worker *worker = op->worker;
	struct stacktune_done *done = &worker->done[worker->done_count++];

	done->slot = op->slot;
	done->status = cpl->status_raw >> 1;
}

/* Hands an operation on the slot's page over: 0; -ENOMEM where there is no room until others are
 * complete; another negative errno where SPDK refuses it. */
int
stacktune_worker_submit(struct stacktune_worker *worker, uint32_t lane_number, uint32_t slot, uint32_t kind,
			uint64_t offset_bytes)
{
	struct stacktune_lane *lane = &worker->lanes[lane_number];
	struct stacktune_op *op = &worker->ops[slot];
	uint64_t block = offset_bytes / lane->sector_bytes;
	uint32_t blocks = worker->page_bytes / lane->sector_bytes;
	uint8_t *page = worker->pages + slot * worker->page_bytes;

	switch (kind) {
	case STACKTUNE_READ:
		return spdk_nvme_ns_cmd_read(lane->ns, lane->queue, page, block, blocks, complete, op, 0);
	case STACKTUNE_WRITE:
		return spdk_nvme_ns_cmd_write(lane->ns, lane->queue, page, block, blocks, complete, op, 0);
	case STACKTUNE_WRITE_DURABLE:
		return spdk_nvme_ns_cmd_write(lane->ns, lane->queue, page, block, blocks, complete, op,
					      SPDK_NVME_IO_FLAGS_FORCE_UNIT_ACCESS);
	case STACKTUNE_FLUSH:
		return spdk_nvme_ns_cmd_flush(lane->ns, lane->queue, complete, op);
	default:
		return -EINVAL;
	}
}

/* Looks at all queues once. Returns how many operations are complete, which `*done` then lists until the
 * next look, or a negative errno, after which the worker can't go on. */
int
stacktune_worker_poll(struct stacktune_worker *worker, const struct stacktune_done **done)
{
	uint32_t i;
	int rc;

	worker->done_count = 0;
	*done = worker->done;
	for (i = 0; i < worker->lane_count; i++) {
		struct stacktune_lane *lane = &worker->lanes[i];

		rc = atomic_load_explicit(&lane->drive->failed, memory_order_relaxed);
		if (rc != 0) {
			return -rc;
		}
		rc = spdk_nvme_qpair_process_completions(lane->queue, 0);
		if (rc < 0) {
			/* Its queues are not deleted any more: the drive may still reach the pages. */
			atomic_store(&lane->drive->failed, -rc);
			return rc;
		}
	}
	return worker->done_count;
}
