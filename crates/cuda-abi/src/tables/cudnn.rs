//! cuDNN.

/// Hands the rows of cuDNN to the macro `$with`.
#[macro_export]
macro_rules! for_each_cudnn {
    ($with:ident) => {
        $with! {
            accepted cudnnBackendCreateDescriptor;
            accepted cudnnBackendDestroyDescriptor;
            accepted cudnnBackendExecute;
            accepted cudnnBackendFinalize;
            accepted cudnnBackendGetAttribute;
            accepted cudnnBackendSetAttribute;
            accepted cudnnBatchNormalizationBackwardEx;
            accepted cudnnBatchNormalizationForwardInference;
            accepted cudnnBatchNormalizationForwardTrainingEx;
            accepted cudnnCTCLoss;
            accepted cudnnCTCLoss_v8;
            accepted cudnnConvolutionBackwardData;
            accepted cudnnConvolutionBackwardFilter;
            accepted cudnnConvolutionBiasActivationForward;
            accepted cudnnConvolutionForward;
            accepted cudnnCreate [0: handle];
            accepted cudnnCreateActivationDescriptor;
            accepted cudnnCreateCTCLossDescriptor;
            accepted cudnnCreateConvolutionDescriptor;
            accepted cudnnCreateDropoutDescriptor;
            accepted cudnnCreateFilterDescriptor;
            accepted cudnnCreatePoolingDescriptor;
            accepted cudnnCreateRNNDataDescriptor;
            accepted cudnnCreateRNNDescriptor;
            accepted cudnnCreateSpatialTransformerDescriptor;
            accepted cudnnCreateTensorDescriptor;
            accepted cudnnDestroyActivationDescriptor;
            accepted cudnnDestroyCTCLossDescriptor;
            accepted cudnnDestroyConvolutionDescriptor;
            accepted cudnnDestroyDropoutDescriptor;
            accepted cudnnDestroyFilterDescriptor;
            accepted cudnnDestroyRNNDataDescriptor;
            accepted cudnnDestroyRNNDescriptor;
            accepted cudnnDestroySpatialTransformerDescriptor;
            accepted cudnnDestroyTensorDescriptor;
            accepted cudnnDropoutGetStatesSize;
            accepted cudnnFindConvolutionBackwardDataAlgorithmEx;
            accepted cudnnFindConvolutionBackwardFilterAlgorithmEx;
            accepted cudnnFindConvolutionForwardAlgorithmEx;
            accepted cudnnGetBatchNormalizationBackwardExWorkspaceSize;
            accepted cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize;
            accepted cudnnGetBatchNormalizationTrainingExReserveSpaceSize;
            accepted cudnnGetCTCLossWorkspaceSize;
            accepted cudnnGetCTCLossWorkspaceSize_v8;
            accepted cudnnGetConvolutionBackwardDataAlgorithm_v7;
            accepted cudnnGetConvolutionBackwardDataWorkspaceSize;
            accepted cudnnGetConvolutionBackwardFilterAlgorithm_v7;
            accepted cudnnGetConvolutionBackwardFilterWorkspaceSize;
            accepted cudnnGetConvolutionForwardAlgorithm_v7;
            accepted cudnnGetConvolutionForwardWorkspaceSize;
            accepted cudnnGetCudartVersion;
            accepted cudnnGetErrorString;
            accepted cudnnGetFilterNdDescriptor;
            accepted cudnnGetLastErrorString;
            accepted cudnnGetProperty;
            accepted cudnnGetRNNTempSpaceSizes;
            accepted cudnnGetRNNWeightParams;
            accepted cudnnGetRNNWeightSpaceSize;
            accepted cudnnGetStream;
            accepted cudnnGetTensorNdDescriptor;
            accepted cudnnGetVersion;
            accepted cudnnPoolingForward;
            accepted cudnnRNNBackwardData_v8;
            accepted cudnnRNNBackwardWeights_v8;
            accepted cudnnRNNForward;
            accepted cudnnRestoreDropoutDescriptor;
            accepted cudnnSetActivationDescriptor;
            accepted cudnnSetCTCLossDescriptorEx;
            accepted cudnnSetCTCLossDescriptor_v9;
            accepted cudnnSetConvolutionGroupCount;
            accepted cudnnSetConvolutionMathType;
            accepted cudnnSetConvolutionNdDescriptor;
            accepted cudnnSetDropoutDescriptor;
            accepted cudnnSetFilterNdDescriptor;
            accepted cudnnSetPooling2dDescriptor;
            accepted cudnnSetRNNDataDescriptor;
            accepted cudnnSetRNNDescriptor_v8;
            accepted cudnnSetSpatialTransformerNdDescriptor;
            accepted cudnnSetStream;
            accepted cudnnSetTensorNdDescriptor;
            accepted cudnnSpatialTfGridGeneratorBackward;
            accepted cudnnSpatialTfGridGeneratorForward;
            accepted cudnnSpatialTfSamplerBackward;
            accepted cudnnSpatialTfSamplerForward;
        }
    };
}

for_each_cudnn!(rows);
