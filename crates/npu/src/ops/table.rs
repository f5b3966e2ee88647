//! The rows. One line per instruction; the essay of [`super`] explains the columns.

macro_rules! rows {
    ($($op:ident $name:literal $place:literal $operands:literal $meaning:literal;)*) => {
        /// An instruction.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub(crate) enum Op { $($op,)* }

        pub(super) const ROWS: &[(Op, &str, &str, &str, &str)] =
            &[$((Op::$op, $name, $place, $operands, $meaning),)*];
    };
}

rows! {
    // Scalars.
    CreateVar "create_var" "both" "var_name:o value:x=0 dtype:d=" "sets a variable; `dtype` is what `GetValueFrom` casts to";
    VarAssign "var_assign" "control" "out_name:o src:x" "out = src";
    VarAdd "var_add" "both" "out:o a:x b:x" "out = a + b";
    VarSub "var_sub" "both" "out:o a:x b:x" "out = a - b";
    VarMul "var_mul" "both" "out:o a:x b:x" "out = a * b";
    VarDiv "var_div" "control" "out:o a:x b:x" "out = a / b; floor division when both are integers";
    VarMod "var_mod" "control" "out:o a b" "out = a - b * floor(a / b)";
    ScalarSqrt "scalar_sqrt" "control" "out:o a:x" "out = square root of a";
    CeilDiv "CeilDiv" "control" "out:o a b" "out = ceil(a / b)";
    Min "Min" "control" "out:o a b" "out = the smaller";
    Max "Max" "control" "out:o a b" "out = the larger";
    Align8 "Align8" "control" "out:o a" "out = a rounded up to a multiple of 8";
    Align16 "Align16" "control" "out:o a" "the same with 16";
    Align32 "Align32" "control" "out:o a" "the same with 32";
    Align64 "Align64" "control" "out:o a" "the same with 64";
    Align128 "Align128" "control" "out:o a" "the same with 128";
    Align256 "Align256" "control" "out:o a" "the same with 256";
    CreateVarlist "create_varlist" "control" "name:n length" "makes a list of variables, all 0; `name[index]` is one of them";
    // Topology.
    GetCubeNum "GetCubeNum" "control" "out:o" "out = number of cores";
    GetCubeIdx "GetCubeIdx" "control" "out:o" "out = this core";
    GetVecNum "GetVecNum" "control" "out:o" "out = cores x active vector lanes";
    GetVecIdx "GetVecIdx" "control" "out:o" "out = core x active vector lanes + this lane";
    GetSubBlockIdx "GetSubBlockIdx" "control" "out:o" "out = 0 on vec0 and the cube, 1 on vec1";
    // Control flow.
    StartLoop "start_loop" "both" "var_name:o start stop step=1" "Python's range; bounds are read once";
    StartMicroLoop "start_micro_loop" "both" "var_name:o start stop step=1" "the same";
    EndLoop "end_loop" "both" "" "ends a loop";
    BreakLoop "break_loop" "control" "" "leaves the innermost loop";
    ContinueLoop "continue_loop" "control" "" "goes to the next turn of the innermost loop";
    StartIf "start_if" "control" "cond:n" "runs what follows if the condition holds";
    StartElif "start_elif" "control" "cond:n" "otherwise, if this holds";
    StartElse "start_else" "control" "" "otherwise";
    EndIf "end_if" "control" "" "ends an if";
    EnterVecScope "enter_vec_scope" "control" "" "marks a scope; no effect";
    EndVecScope "end_vec_scope" "control" "" "marks a scope; no effect";
    EnterCubeScope "enter_cube_scope" "control" "" "marks a scope; no effect";
    EndCubeScope "end_cube_scope" "control" "" "marks a scope; no effect";
    // Views.
    GetBuf "get_buf" "control" "view_name:w index slot_names:n" "view = slot[index mod number of slots]";
    SliceGm "slice_gm_tensor" "control" "view_name:w source_name:t offset:l src_dim:l span:l" "row-major window of a tensor in global memory";
    SliceTensor "slice_tensor" "control" "view_name:w source_name:t offset:l span:l src_dim:l=" "window of a local tensor: strided in the unified buffer, from the fractal on in the cube's memories";
    // Scalars and memory.
    GetValueFrom "GetValueFrom" "control" "var:o tensor:t" "var = first element; drains this lane's pipes that touch it by the program's own events";
    SetValueTo "SetValueTo" "control" "var:x tensor:t" "first element = var";
    // Atomics.
    AtomicAdd "atomic_add" "control" "" "later stores to global memory add";
    AtomicMax "atomic_max" "control" "" "later stores to global memory take the larger";
    AtomicMin "atomic_min" "control" "" "later stores to global memory take the smaller";
    AtomicEnd "atomic_end" "control" "" "later stores replace";
    SetAtomicType "set_atomic_type" "control" "dtype:d" "the type that atomic stores compute in";
    // Events and flags.
    CreateSevent "create_sevent" "control" "name:e src_pipe:p dst_pipe:p preset:n=0" "an event of one flag";
    CreateDevent "create_devent" "control" "name:e src_pipe:p dst_pipe:p preset:n=0" "an event of two flags in rotation";
    CreateTevent "create_tevent" "control" "name:e src_pipe:p dst_pipe:p preset:n=0" "an event of three flags in rotation";
    CreateQevent "create_qevent" "control" "name:e src_pipe:p dst_pipe:p preset:n=0" "an event of four flags in rotation";
    EventSet "event_set" "control" "event:e" "sets the next flag when the source pipe has done all that was dispatched to it";
    EventSetall "event_setall" "control" "event:e" "sets every flag of the event";
    EventWait "event_wait" "control" "event:e" "the destination pipe waits for the next flag and clears it";
    EventRelease "event_release" "control" "event:e" "takes what is still set: one flag, and a second one of a rotating event if there is one";
    SetFlag "setflag" "MTE2 MTE1 M FIX V MTE3 S" "dst_pipe:p event_id" "publishes a flag from this pipe to `dst_pipe`";
    WaitFlag "waitflag" "MTE2 MTE1 M FIX V MTE3 S" "src_pipe:p event_id" "waits for a flag from `src_pipe`";
    CubeReady "cube_ready" "FIX MTE2 MTE1 M" "flag" "publishes a phase to every vector lane of the core";
    WaitCube "wait_cube" "V MTE2 MTE3 S" "flag" "waits for the cube's phase";
    VecReady "vec_ready" "MTE3 MTE2 V" "flag" "publishes a phase to the cube";
    WaitVec "wait_vec" "FIX MTE2 MTE1 M S" "flag" "waits for a phase of every vector lane";
    AllcubeReady "allcube_ready" "FIX MTE2 MTE1 M" "flag" "counts this core's cube in for a phase";
    AllcubeWait "allcube_wait" "FIX MTE2 MTE1 M S" "flag" "waits until every cube is in";
    AllvecReady "allvec_ready" "MTE3 MTE2 V" "flag" "counts this vector lane in for a phase";
    AllvecWait "allvec_wait" "MTE3 MTE2 V S" "flag" "waits until every vector lane is in";
    StartAutoSync "start_auto_sync" "control" "" "from here on events between pipes are inserted; gone when the program runs";
    EndAutoSync "end_auto_sync" "control" "" "ends such a region";
    Barrier "barrier" "control" "pipe:c(ALL|MTE2|MTE1|M|FIX|V|MTE3)" "ALL: waits for all that was dispatched; one pipe: no effect, a pipe runs in order";
    // Debugging, and what only the builder needs.
    SimPrint "sim_print" "control" "payload:n" "prints texts, variables and first elements after draining the lane";
    SimDump "sim_dump_tensor" "control" "tensor:t filename:n" "keeps a tensor's present content after draining the lane";
    KernelPrint "kernel_print" "control" "payload:n=" "for devices; no effect here";
    KernelDump "kernel_dump_tensor" "control" "tensor:n= filename:n=" "for devices; no effect here";
    Inline "inline" "control" "text:n=" "for devices; no effect here";
    ResetCache "reset_cache" "control" "" "tensors declared after it may lie over earlier ones (`offset`); no effect at run time";
    CleanDcache "clean_dcache" "control" "tensor:n=" "for devices; no effect here";
    CreateGmTensor "create_gm_tensor" "control" "name:n=" "declared in `tensors`; no effect at run time";
    CreateTensor "create_tensor" "control" "name:n=" "declared in `tensors`; no effect at run time";
    CreateDbuf "create_dbuf" "control" "name:n=" "declared in `tensors`; no effect at run time";
    CreateTbuf "create_tbuf" "control" "name:n=" "declared in `tensors`; no effect at run time";
    CreateQbuf "create_qbuf" "control" "name:n=" "declared in `tensors`; no effect at run time";
    Reinterpret "reinterpret" "control" "name:n=" "declared in `tensors` as a view; no effect at run time";
    ReshapeGm "reshape_gm_tensor" "control" "name:n=" "declared in `tensors` as a view; no effect at run time";
    SplitWorkspace "split_workspace" "control" "name:n=" "declared in `tensors` as a view; no effect at run time";
    // Cube.
    GmToL1 "gm_to_l1_nd2nz" "MTE2" "dst:t src:t M N N_src M_dst=M" "zeroes dst, then row-major M x N with row pitch N_src to column blocks of align16(M_dst) rows";
    SetConstantL1 "set_constant_to_l1" "MTE2" "tensor:t n_blocks val:f" "fills n_blocks x 32 bytes";
    L1ToL0 "l1_to_l0" "MTE1" "dst:t src:t m_dst n_dst m_src n_src src_is_transpose=0 src_layout:c(NZ|ZZ)=NZ dst_layout:c(auto|NZ|ZZ|ZN)=auto src_row0=0 src_col0=0" "window m_dst x n_dst of an m_src x n_src matrix to an operand of the matrix unit; transposed: stored by row blocks (ZN)";
    Mmad "mmad" "M" "dst:t src_a:t src_b:t M N K is_init=1 a_layout:c(auto|NZ|ZZ|ZN)=auto b_layout:c(auto|NZ|ZZ|ZN)=auto dst_row0=0 dst_col0=0 dst_rows=M" "dst (+)= A[M,K] B[N,K]^T; adds to what is there unless is_init";
    L0cToGm "l0c_to_gm_nz2nd" "FIX" "dst:t src:t M N N_dst M_src=M relu=0" "accumulator to row-major with row pitch N_dst; atomic if the lane says so";
    L0cToL1 "l0c_to_l1" "FIX" "dst:t src:t M N M_dst=M M_src=M relu=0" "accumulator to column blocks of dst's type";
    L0cToUb "l0c_to_ub" "FIX" "dst:t src:t M N N_dst=N M_src=M dual_mode:c(SINGLE|SPLITM|SPLITN)=SINGLE sub_block_id=0 relu=0" "accumulator to one or both unified buffers of the core";
    CubeCopy "cube_m_copy" "M" "dst:t src:t" "dst = src, element by element";
    CubeScale "cube_m_scale" "M" "dst:t src:t alpha:f" "dst = src x alpha";
    CopyShared "copy_shared" "MTE2 MTE1 M FIX V MTE3" "dst:t src:t" "dst = src, element by element";
    FillShared "fill_shared" "MTE2 MTE1 M FIX V MTE3" "dst:t val:f" "every element = val";
    Noop "noop" "MTE2 MTE1 M FIX V MTE3" "" "takes one cycle";
    // Vector: moves.
    GmToUb "gm_to_ub_pad" "MTE2" "dst:t src:t n_burst burst_len_byte src_stride_byte=0 dst_stride=0" "bursts; a burst is padded to 32 bytes with zeros; dst_stride in 32 bytes";
    UbToGm "ub_to_gm_pad" "MTE3" "dst:t src:t n_burst burst_len_byte src_stride=0 dst_stride_byte=0" "the way back; atomic if the lane says so";
    UbToL1Nd "ub_to_l1_nd2nz" "MTE3" "dst:t src:t m_dst n_dst m_src n_src" "row-major m_src x n_src to column blocks of align16(m_dst) rows";
    UbToL1Nz "ub_to_l1_nz" "MTE3" "dst:t src:t m_dst n_dst m_src n_src" "column blocks of m_src rows to column blocks of align16(m_dst) rows";
    UbToUb "ub_to_ub" "V" "dst:t src:t n_burst burst_len src_stride=0 dst_stride=0" "bursts within the unified buffer, all in 32 bytes";
    // Vector: masks.
    SetMask "set_mask" "V" "low high" "128-bit lane mask of later repeats";
    ResetMask "reset_mask" "V" "" "all lanes";
    SetMaskByCount "set_mask_by_count" "V" "count" "counter mode: later instructions work on `count` elements";
    SetMaskCount "set_mask_count" "V" "" "counter mode; the count is the mask's low half";
    SetMaskCounter "set_mask_counter" "V" "" "the same";
    SetMaskNormal "set_mask_normal" "V" "" "back to lane masks";
    // Vector: arithmetic in repeats.
    Add "add" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "a + b";
    Sub "sub" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "a - b";
    Mul "mul" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "a x b";
    Div "div" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "a / b";
    Vmax "vmax" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "the larger";
    Vmin "vmin" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "the smaller";
    Vand "vand" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "bits of 16-bit integers";
    Vor "vor" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "bits of 16-bit integers";
    MulAddDst "muladddst" "V" "dst:t src1:t src2:t repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8" "dst + a x b";
    Exp "exp" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "e^a";
    Ln "ln" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "natural logarithm";
    Abs "abs" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "|a|";
    Rec "rec" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "1 / a";
    Sqrt "sqrt" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "square root";
    Rsqrt "rsqrt" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "1 / square root";
    Vnot "vnot" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "bits of 16-bit integers";
    Relu "relu" "V" "dst:t src:t repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "max(a, 0)";
    Adds "adds" "V" "dst:t src:t val:f repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "a + val";
    Muls "muls" "V" "dst:t src:t val:f repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "a x val";
    Vmaxs "vmaxs" "V" "dst:t src:t val:f repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "max(a, val)";
    Vmins "vmins" "V" "dst:t src:t val:f repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "min(a, val)";
    Lrelu "lrelu" "V" "dst:t src:t val:f repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "a if a > 0 else a x val";
    Axpy "axpy" "V" "dst:t src:t val:f repeat=0 dst_blk_stride=1 src_blk_stride=1 dst_rep_stride=8 src_rep_stride=8" "dst + a x val";
    Dup "dup" "V" "dst:t src:f repeat=0 dst_blk_stride=1 dst_rep_stride=8" "every lane = src";
    Brcb "brcb" "V" "dst:t src:t repeat dst_blk_stride=1 dst_rep_stride=8" "per repeat eight scalars, each to a block of 32 bytes; no mask";
    Cast "cast" "V" "dst:t src:t mode:c(CAST_NONE|CAST_RINT|CAST_FLOOR|CAST_CEIL|CAST_ROUND|CAST_TRUNC)=CAST_NONE repeat=0 dst_rep_stride=8 src_rep_stride=8" "to dst's type; per repeat as many elements as the wider type has in 256 bytes";
    Cmax "cmax" "V" "dst:t src:t repeat=1 dst_rep_stride=1 src_blk_stride=1 src_rep_stride=8" "largest lane of each repeat, at element rep x dst_rep_stride";
    Cmin "cmin" "V" "dst:t src:t repeat=1 dst_rep_stride=1 src_blk_stride=1 src_rep_stride=8" "smallest lane of each repeat";
    Cadd "cadd" "V" "dst:t src:t repeat=1 dst_rep_stride=1 src_blk_stride=1 src_rep_stride=8" "sum of the lanes of each repeat";
    Cgmax "cgmax" "V" "dst:t src:t repeat=1 dst_rep_stride=1 src_blk_stride=1 src_rep_stride=8" "largest of each block: eight results per repeat, at 8 x rep x dst_rep_stride";
    Cgmin "cgmin" "V" "dst:t src:t repeat=1 dst_rep_stride=1 src_blk_stride=1 src_rep_stride=8" "smallest of each block";
    Cgadd "cgadd" "V" "dst:t src:t repeat=1 dst_rep_stride=1 src_blk_stride=1 src_rep_stride=8" "sum of each block";
    Cpadd "cpadd" "V" "dst:t src:t repeat=1 dst_rep_stride=1 src_blk_stride=1 src_rep_stride=8" "sums of pairs: half as many results per repeat, dst_rep_stride in 128 bytes";
    Compare "compare" "V" "dst:t src1:t src2:t mode:c(LT|LE|GT|GE|EQ|NE) repeat=0 src1_blk_stride=1 src2_blk_stride=1 src1_rep_stride=8 src2_rep_stride=8" "one bit per lane, low bit first; no mask";
    CompareScalar "compare_scalar" "V" "dst:t src:t val:f mode:c(LT|LE|GT|GE|EQ|NE) repeat=0 src_blk_stride=1 src_rep_stride=8" "the same with a number";
    Select "select" "V" "dst:t selmask:t src1:t src2:t= mode:c(TENSOR_TENSOR|TENSOR_SCALAR)=TENSOR_TENSOR repeat=0 dst_blk_stride=1 src1_blk_stride=1 src2_blk_stride=1 dst_rep_stride=8 src1_rep_stride=8 src2_rep_stride=8 val:f=0" "src1 where the bit is set, else src2 or val";
    Sort32 "sort32" "V" "dst:t src:t idx:t repeat" "32 values and their u32 indices, descending, as pairs of 8 bytes";
    MergeSort4 "mergesort4" "V" "dst:t src:t length_per_seq repeat=1" "per repeat merges four sorted runs of pairs that follow each other";
    MergeSort2 "mergesort_2seq" "V" "dst:t src1:t src2:t size1 size2" "merges two sorted runs of pairs";
    Gather "gather" "V" "dst:t src:t offset:t start_idx=0 repeat=1 dst_rep_stride=8" "element at byte start_idx + offset[lane] of src";
    Scatter "scatter" "V" "dst:t src:t offset:t start_idx=0 repeat=1 src_rep_stride=8" "to byte start_idx + offset[lane] of dst";
    CallMicro "call_micro" "V" "name:n call_bindings:n" "runs a micro program as one task";
    // Micro: declarations.
    CreateReg "create_reg" "micro" "name:r dtype:d" "a register of 256 bytes";
    CreateReglist "create_reglist" "micro" "name:r dtype:d length" "registers `name[0]` to `name[length-1]`; an index may be a variable";
    CreateMaskreg "create_maskreg" "micro" "name:m dtype:d=f32 init:n=" "a mask; init ALL, ALLF, VL1 to VL128, H (half), Q (quarter), M3, M4 (multiples)";
    MicroSlice "micro_slice_tensor" "micro" "view_name:w source_name:t offset" "the tensor from an element on";
    // Micro: moves.
    Ub2Reg "ub2reg" "micro" "dst:r src:t blk_stride=1 mask:m= offset=0" "eight blocks of 32 bytes; a block is loaded if any of its lanes is active";
    Reg2Ub "reg2ub" "micro" "dst:t src:r blk_stride=1 mask:m= offset=0" "the way back";
    Ub2RegCont "ub2regcont" "micro" "dst:r src:t mode:c(DIST_NORM|DIST_DS_B8|DIST_DS_B16|DIST_US_B8|DIST_US_B16|DIST_BRC_B8|DIST_BRC_B16|DIST_BRC_B32|DIST_E2B_B16|DIST_E2B_B32|DIST_UNPACK_B8|DIST_UNPACK_B16|DIST_UNPACK_B32|DIST_UNPACK4_B8)=DIST_NORM offset=0" "contiguous load: every other (DS), doubled (US), broadcast (BRC), one element per block (E2B), zero-extended (UNPACK)";
    Reg2UbCont "reg2ubcont" "micro" "dst:t src:r mode:c(DIST_NORM_B8|DIST_NORM_B16|DIST_NORM_B32|DIST_NORM|DIST_PACK_B16|DIST_PACK_B32|DIST_PACK_B64|DIST_PACK4_B32|DIST_FIRST_ELEMENT_B8|DIST_FIRST_ELEMENT_B16|DIST_FIRST_ELEMENT_B32)=DIST_NORM mask:m= offset=0" "contiguous store: low half (PACK) or quarter (PACK4) of each element, or the first one only";
    DataCopyGather "datacopygather" "micro" "dst:r src:t index:r mask:m=" "dst[lane] = src[index[lane]]";
    DataCopyScatter "datacopyscatter" "micro" "dst:t src:r index:r mask:m=" "dst[index[lane]] = src[lane]";
    RegGather "gather" "micro" "dst:r src:r index:r mask:m=" "dst[lane] = register src at lane index[lane]";
    GatherMask "gathermask" "micro" "dst:r src:r mask:m" "active lanes packed to the front, zeros behind";
    // Micro: arithmetic.
    RAdd "vadd" "micro" "dst:r src1:r src2:r mask:m=" "a + b";
    RSub "vsub" "micro" "dst:r src1:r src2:r mask:m=" "a - b";
    RMul "vmul" "micro" "dst:r src1:r src2:r mask:m=" "a x b";
    RDiv "vdiv" "micro" "dst:r src1:r src2:r mask:m=" "a / b";
    RMax "vmax" "micro" "dst:r src1:r src2:r mask:m=" "the larger";
    RMin "vmin" "micro" "dst:r src1:r src2:r mask:m=" "the smaller";
    RAnd "vand" "micro" "dst:r src1:r src2:r mask:m=" "bits";
    ROr "vor" "micro" "dst:r src1:r src2:r mask:m=" "bits";
    RXor "vxor" "micro" "dst:r src1:r src2:r mask:m=" "bits";
    RPrelu "vprelu" "micro" "dst:r src1:r src2:r mask:m=" "a if a > 0 else a x b";
    RAbs "vabs" "micro" "dst:r src:r mask:m=" "|a|";
    RNeg "vneg" "micro" "dst:r src:r mask:m=" "-a";
    RNot "vnot" "micro" "dst:r src:r mask:m=" "bits";
    RCopy "vcopy" "micro" "dst:r src:r mask:m=" "a";
    RExp "vexp" "micro" "dst:r src:r mask:m=" "e^a";
    RRelu "vrelu" "micro" "dst:r src:r mask:m=" "max(a, 0)";
    RSqrt "vsqrt" "micro" "dst:r src:r mask:m=" "square root";
    RLn "vln" "micro" "dst:r src:r mask:m=" "natural logarithm";
    RLog "vlog" "micro" "dst:r src:r mask:m=" "natural logarithm";
    RLog2 "vlog2" "micro" "dst:r src:r mask:m=" "logarithm to base 2";
    RLog10 "vlog10" "micro" "dst:r src:r mask:m=" "logarithm to base 10";
    RAdds "vadds" "micro" "dst:r src:r val:f mask:m=" "a + val";
    RMuls "vmuls" "micro" "dst:r src:r val:f mask:m=" "a x val";
    RMaxs "vmaxs" "micro" "dst:r src:r val:f mask:m=" "max(a, val)";
    RMins "vmins" "micro" "dst:r src:r val:f mask:m=" "min(a, val)";
    RLrelu "vlrelu" "micro" "dst:r src:r val:f mask:m=" "a if a > 0 else a x val";
    RShl "shiftls" "micro" "dst:r src:r val:f mask:m=" "a << val";
    RShr "shiftrs" "micro" "dst:r src:r val:f mask:m=" "a >> val; arithmetic for signed types";
    RAxpy "vaxpy" "micro" "dst:r src:r val:f mask:m=" "dst + a x val";
    RDup "vdup" "micro" "dst:r val:f mask:m=" "every lane = val";
    RDupLane "vduplane" "micro" "dst:r src:r mask:m=" "every lane = lane 0 of src";
    RCadd "vcadd" "micro" "dst:r src:r mask:m=" "lane 0 = sum";
    RCmax "vcmax" "micro" "dst:r src:r mask:m=" "lane 0 = largest";
    RCmin "vcmin" "micro" "dst:r src:r mask:m=" "lane 0 = smallest";
    RCgadd "vcgadd" "micro" "dst:r src:r mask:m=" "lanes 0 to 7 = sum of each block";
    RCgmax "vcgmax" "micro" "dst:r src:r mask:m=" "lanes 0 to 7 = largest of each block";
    RCgmin "vcgmin" "micro" "dst:r src:r mask:m=" "lanes 0 to 7 = smallest of each block";
    RCpadd "vcpadd" "micro" "dst:r src:r mask:m=" "sums of pairs in the lower half";
    RCast "cast" "micro" "dst:r src:r round:c(CAST_NONE|CAST_RINT|CAST_FLOOR|CAST_CEIL|CAST_ROUND|CAST_TRUNC)=CAST_RINT reg_layout:c(ZERO|ONE|TWO|THREE)=ZERO saturate=1 mask:m=" "between widths: the layout says which lane of each group";
    RCompare "compare" "micro" "dst:m src1:r src2:r mode:c(LT|LE|GT|GE|EQ|NE) mask:m=" "a mask";
    RCompares "compares" "micro" "dst:m src:r val:f mode:c(LT|LE|GT|GE|EQ|NE) mask:m=" "a mask";
    RSelect "select" "micro" "dst:r src1:r src2:r mask:m" "a where the mask is set, else b";
    RInterleave "interleave" "micro" "dst1:r dst2:r src1:r src2:r" "lanes of both in turn, low halves then high halves";
    RDeinterleave "dinterleave" "micro" "dst1:r dst2:r src1:r src2:r" "even lanes of both, then odd lanes of both";
    RArange "arange" "micro" "dst:r start:f mode:c(INCREASE|DECREASE)=INCREASE" "start, start + 1, … or start, start - 1, …";
    // Micro: masks.
    MaskNot "masknot" "micro" "dst:m src:m mask:m=" "not";
    MaskMov "maskmov" "micro" "dst:m src:m mask:m=" "a copy";
    MaskAnd "maskand" "micro" "dst:m src1:m src2:m mask:m=" "and";
    MaskOr "maskor" "micro" "dst:m src1:m src2:m mask:m=" "or";
    MaskXor "maskxor" "micro" "dst:m src1:m src2:m mask:m=" "exclusive or";
    MaskSel "masksel" "micro" "dst:m src1:m src2:m mask:m" "src1 where the mask is set, else src2";
    MaskInterleave "maskinterl" "micro" "dst1:m dst2:m src1:m src2:m" "as interleave";
    MaskDeinterleave "maskdeinterl" "micro" "dst1:m dst2:m src1:m src2:m" "as dinterleave";
    MaskPack "maskpack" "micro" "dst:m src:m part:c(LOWEST|HIGHEST)=LOWEST" "even lanes to the lower or upper half";
    MaskUnpack "maskunpack" "micro" "dst:m src:m part:c(LOWEST|HIGHEST)=LOWEST" "lanes of one half to even lanes, zeros between";
    UpdateMask "updatemask" "micro" "dst:m cnt:o" "the first `cnt` lanes; then cnt = max(0, cnt - lanes)";
    MoveMaskSpr "movemaskspr" "micro" "dst:m" "the lane mask that `set_mask` left";
}
