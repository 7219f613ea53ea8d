# For other scripts: the names of libraries that no program may need to start, because a machine may lack them.
OF_CUDA='^lib(cuda|cudart|cublas|cublasLt|cudnn[a-z_]*|nccl[a-z-]*|nvrtc[a-z-]*|nvJitLink|nvidia[a-z-]*)\.so'
