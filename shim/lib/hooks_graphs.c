/* Graphs that allocate: remembered from the node to the launch. */
#define _GNU_SOURCE
#include "card.h"
#include "driver.h"
#include "graph_books.h"
#include "graphs.h"

static int card_of_pool(const CUmemPoolProps *props) {
	return props->location.type == CU_MEM_LOCATION_TYPE_DEVICE
		       ? card_of_device(props->location.id)
		       : CARD_NONE;
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

/* The allocation that a node of any type makes; NULL if it makes none. */
static const CUDA_MEM_ALLOC_NODE_PARAMS *allocation_of(const CUgraphNodeParams *params) {
	const bool allocates = params != NULL && params->type == CU_GRAPH_NODE_TYPE_MEM_ALLOC;
	return allocates ? &params->alloc : NULL;
}

CUresult hook_cuGraphAddNode(fn_cuGraphAddNode real, CUgraphNode *phGraphNode, CUgraph hGraph,
			     const CUgraphNode *dependencies, size_t numDependencies,
			     CUgraphNodeParams *nodeParams) {
	const CUDA_MEM_ALLOC_NODE_PARAMS *allocation = allocation_of(nodeParams);
	const int card = allocation != NULL ? card_of_pool(&allocation->poolProps) : CARD_NONE;
	if (allocation != NULL && !graphs_fit(card, allocation->bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result =
		real(phGraphNode, hGraph, dependencies, numDependencies, nodeParams);
	if (result == CUDA_SUCCESS && allocation != NULL) {
		graph_books_add(hGraph, allocation->bytesize, card);
	}
	return result;
}

CUresult hook_cuGraphAddNode_v2(fn_cuGraphAddNode_v2 real, CUgraphNode *phGraphNode, CUgraph hGraph,
				const CUgraphNode *dependencies, const void *dependencyData,
				size_t numDependencies, CUgraphNodeParams *nodeParams) {
	const CUDA_MEM_ALLOC_NODE_PARAMS *allocation = allocation_of(nodeParams);
	const int card = allocation != NULL ? card_of_pool(&allocation->poolProps) : CARD_NONE;
	if (allocation != NULL && !graphs_fit(card, allocation->bytesize)) {
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	const CUresult result = real(phGraphNode, hGraph, dependencies, dependencyData,
				     numDependencies, nodeParams);
	if (result == CUDA_SUCCESS && allocation != NULL) {
		graph_books_add(hGraph, allocation->bytesize, card);
	}
	return result;
}

CUresult hook_cuGraphInstantiate_v2(fn_cuGraphInstantiate real, CUgraphExec *phGraphExec,
				    CUgraph hGraph, CUgraphNode *phErrorNode, char *logBuffer,
				    size_t bufferSize) {
	const CUresult result = real(phGraphExec, hGraph, phErrorNode, logBuffer, bufferSize);
	if (result == CUDA_SUCCESS) {
		graph_books_instantiate(hGraph, *phGraphExec);
	}
	return result;
}

CUresult hook_cuGraphInstantiateWithFlags(fn_cuGraphInstantiateWithFlags real,
					  CUgraphExec *phGraphExec, CUgraph hGraph,
					  unsigned long long flags) {
	const CUresult result = real(phGraphExec, hGraph, flags);
	if (result == CUDA_SUCCESS) {
		graph_books_instantiate(hGraph, *phGraphExec);
	}
	return result;
}

CUresult hook_cuGraphInstantiateWithParams(fn_cuGraphInstantiateWithParams real,
					   CUgraphExec *phGraphExec, CUgraph hGraph,
					   CUDA_GRAPH_INSTANTIATE_PARAMS *instantiateParams) {
	const CUresult result = real(phGraphExec, hGraph, instantiateParams);
	if (result == CUDA_SUCCESS) {
		graph_books_instantiate(hGraph, *phGraphExec);
	}
	return result;
}

CUresult hook_cuGraphExecDestroy(fn_cuGraphExecDestroy real, CUgraphExec hGraphExec) {
	graph_books_forget(true, hGraphExec);
	return real(hGraphExec);
}

CUresult hook_cuGraphDestroy(fn_cuGraphDestroy real, CUgraph hGraph) {
	graph_books_forget(false, hGraph);
	return real(hGraph);
}

CUresult hook_cuDeviceGraphMemTrim(fn_cuDeviceGraphMemTrim real, CUdevice device) {
	const CUresult result = real(device);
	graphs_read(card_of_device(device));
	return result;
}
