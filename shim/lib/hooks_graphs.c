/* Graphs that allocate: remembered from the node to the launch. */
#define _GNU_SOURCE
#include "card.h"
#include "driver.h"
#include "graph_books.h"
#include "graph_cost.h"
#include "graphs.h"

static int card_of_pool(const CUmemPoolProps *props) {
	return card_of_memory(props->allocType, &props->location);
}

CUresult hook_cuGraphAddMemAllocNode(fn_cuGraphAddMemAllocNode real, CUgraphNode *phGraphNode,
				     CUgraph hGraph, const CUgraphNode *dependencies,
				     size_t numDependencies,
				     CUDA_MEM_ALLOC_NODE_PARAMS *nodeParams) {
	const int card = nodeParams != NULL ? card_of_pool(&nodeParams->poolProps) : CARD_NONE;
	if (nodeParams != NULL && !graphs_fit(card, nodeParams->bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result =
		real(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
	if (result == CUDA_SUCCESS) {
		graph_books_add(hGraph, nodeParams->bytesize, card);
	}
	return result;
}

/* A node of any type that is about to be added, as far as it matters. */
struct addition {
	int card;
	uint64_t bytes; /* that it allocates */
	CUgraph child;	/* that is moved in; NULL: none */
};

/* Returns false if what the node allocates could not fit. */
static bool may_add(const CUgraphNodeParams *params, struct addition *addition) {
	*addition = (struct addition){.card = CARD_NONE};
	if (params != NULL && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC) {
		addition->card = card_of_pool(&params->alloc.poolProps);
		addition->bytes = params->alloc.bytesize;
		return graphs_fit(addition->card, addition->bytes);
	}
	if (params != NULL && params->type == CU_GRAPH_NODE_TYPE_GRAPH &&
	    params->graph.ownership == CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE) {
		addition->child = params->graph.graph;
	}
	return true;
}

static CUresult added(CUgraph graph, const struct addition *addition, CUresult result) {
	if (result == CUDA_SUCCESS && addition->bytes != 0) {
		graph_books_add(graph, addition->bytes, addition->card);
	}
	if (result == CUDA_SUCCESS && addition->child != NULL) {
		graph_books_move(addition->child, graph);
	}
	return result;
}

CUresult hook_cuGraphAddNode(fn_cuGraphAddNode real, CUgraphNode *phGraphNode, CUgraph hGraph,
			     const CUgraphNode *dependencies, size_t numDependencies,
			     CUgraphNodeParams *nodeParams) {
	struct addition addition;
	if (!may_add(nodeParams, &addition)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return added(hGraph, &addition,
		     real(phGraphNode, hGraph, dependencies, numDependencies, nodeParams));
}

CUresult hook_cuGraphAddNode_v2(fn_cuGraphAddNode_v2 real, CUgraphNode *phGraphNode, CUgraph hGraph,
				const CUgraphNode *dependencies, const void *dependencyData,
				size_t numDependencies, CUgraphNodeParams *nodeParams) {
	struct addition addition;
	if (!may_add(nodeParams, &addition)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	return added(hGraph, &addition,
		     real(phGraphNode, hGraph, dependencies, dependencyData, numDependencies,
			  nodeParams));
}

/* The body of a hook that instantiates a graph: with the flag for it, the memory is taken at once. */
#define INSTANTIATE(flags, ...)                                                                    \
	do {                                                                                       \
		struct graph_charges charges = {.count = 0};                                       \
		if (((flags) & CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD) != 0 &&                         \
		    !graph_books_begin(RECORD_GRAPH, hGraph, &charges)) {                          \
			return CUDA_ERROR_OUT_OF_MEMORY;                                           \
		}                                                                                  \
		const CUresult result = real(phGraphExec, hGraph, __VA_ARGS__);                    \
		if (result == CUDA_SUCCESS) {                                                      \
			graph_books_instantiate(                                                   \
				hGraph, *phGraphExec,                                              \
				((flags) & CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) != 0); \
			graph_cost_note(hGraph, *phGraphExec);                                     \
		}                                                                                  \
		graph_books_end(&charges);                                                         \
		return result;                                                                     \
	} while (0)

CUresult hook_cuGraphInstantiate_v2(fn_cuGraphInstantiate real, CUgraphExec *phGraphExec,
				    CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
				    size_t bufferSize) {
	INSTANTIATE(0ull, phErrorNode, logBuffer, bufferSize);
}

CUresult hook_cuGraphInstantiateWithFlags(fn_cuGraphInstantiateWithFlags real,
					  CUgraphExec *phGraphExec, CUgraph hGraph,
					  unsigned long long flags) {
	INSTANTIATE(flags, flags);
}

CUresult hook_cuGraphInstantiateWithParams(fn_cuGraphInstantiateWithParams real,
					   CUgraphExec *phGraphExec, CUgraph hGraph,
					   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
	const unsigned long long flags = instantiateParams != NULL ? instantiateParams->flags : 0;
	INSTANTIATE(flags, instantiateParams);
}

CUresult hook_cuGraphUpload(fn_cuGraphUpload real, CUgraphExec hGraphExec, CUstream hStream) {
	struct graph_charges charges;
	if (!graph_books_begin(RECORD_EXEC, hGraphExec, &charges)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(hGraphExec, hStream);
	graph_books_end(&charges);
	return result;
}

CUresult hook_cuGraphExecDestroy(fn_cuGraphExecDestroy real, CUgraphExec hGraphExec) {
	graph_books_forget(RECORD_EXEC, hGraphExec);
	graph_cost_forget(hGraphExec);
	return real(hGraphExec);
}

CUresult hook_cuGraphDestroy(fn_cuGraphDestroy real, CUgraph hGraph) {
	graph_books_forget(RECORD_GRAPH, hGraph);
	return real(hGraph);
}

/* The allocations of the graph are captured, and noted, once more. */
CUresult hook_cuStreamBeginRecaptureToGraph(fn_cuStreamBeginRecaptureToGraph real, CUstream hStream,
					    CUstreamCaptureMode mode, CUgraph hGraph,
					    void *callbackFunc, void *userData) {
	const CUresult result = real(hStream, mode, hGraph, callbackFunc, userData);
	if (result == CUDA_SUCCESS) {
		graph_books_forget(RECORD_GRAPH, hGraph);
	}
	return result;
}

CUresult hook_cuDeviceGraphMemTrim(fn_cuDeviceGraphMemTrim real, CUdevice device) {
	const CUresult result = real(device);
	graphs_read(card_of_device(device));
	return result;
}
